// Names of characters in HTML, as far as texts have them, and their numbers.

// From U+00A0 on, in order.
const LATIN = ("nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot " +
    "cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave " +
    "Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute " +
    "acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml " +
    "divide oslash ugrave uacute ucirc uuml yacute thorn yuml").split(" ");
const OTHERS = ("amp & lt < gt > quot \" apos ' ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ bull • hellip … prime ′ Prime ″ " +
    "lsaquo ‹ rsaquo › euro € trade ™ larr ← uarr ↑ rarr → darr ↓ harr ↔ lArr ⇐ rArr ⇒ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ " +
    "notin ∉ prod ∏ sum ∑ minus − radic √ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ " +
    "sub ⊂ sup ⊃ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ dagger † Dagger ‡ permil ‰ OElig Œ oelig œ Scaron Š scaron š check ✓ cross ✗ " +
    "star ☆ starf ★ alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ " +
    "tau τ upsilon υ phi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω lbrace { rbrace } " +
    "lbrack [ rbrack ] lpar ( rpar ) vert | ast * lowbar _ grave ` dollar $ num # percnt % excl ! quest ? colon : semi ; comma , period . " +
    "plus + equals = commat @ bsol \\ sol / Hat ^ hyphen ‐ ensp \u2002 emsp \u2003 thinsp \u2009 zwnj \u200c zwj \u200d").split(" ");

const NAMES = new Map(LATIN.map((name, i) => [name, String.fromCharCode(0xa0 + i)]));
for (let i = 0; i < OTHERS.length; i += 2) NAMES.set(OTHERS[i], OTHERS[i + 1]);

// The entity that begins at text[at], which is '&': [character, length], or null.
export function entity_at(text, at) {
    const found = /^&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,9}));/.exec(text.slice(at, at + 12));
    if (!found) return null;
    const [whole, decimal, hexadecimal, name] = found;
    if (name) return NAMES.has(name) ? [NAMES.get(name), whole.length] : null;
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hexadecimal, 16);
    const valid = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
    return [valid ? String.fromCodePoint(code) : "\ufffd", whole.length];
}
