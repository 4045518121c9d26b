// What TeX's commands stand for, in tables: names and characters in turn.

function table(text) {
    const words = text.trim().split(/\s+/), found = new Map();
    for (let i = 0; i < words.length; i += 2) found.set(words[i], words[i + 1]);
    return found;
}

// Letters, and what stands like one.
export const LETTERS = table(`
    alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ varkappa ϰ lambda λ mu μ
    nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
    Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω digamma ϝ
    infty ∞ partial ∂ nabla ∇ hbar ℏ hslash ℏ ell ℓ wp ℘ Re ℜ Im ℑ aleph ℵ beth ℶ gimel ℷ imath ı jmath ȷ emptyset ∅ varnothing ∅
    forall ∀ exists ∃ nexists ∄ top ⊤ bot ⊥ angle ∠ measuredangle ∡ triangle △ square □ Box □ blacksquare ■ qed ■ diamond ⋄ Diamond ◇
    lozenge ◊ clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ flat ♭ natural ♮ sharp ♯ prime ′ backprime ‵ checkmark ✓ dagger † ddagger ‡
    degree ° copyright © pounds £ yen ¥ euro € S § P ¶ mho ℧ complement ∁ ldots … dots … dotsc … dotso … vdots ⋮ ddots ⋱ iddots ⋰
    cdots ⋯ dotsb ⋯ dotsm ⋯ dotsi ⋯ % % $ $ # # & & _ _ therefore ∴ because ∵ bigstar ★ eth ð aa å AA Å R ℝ N ℕ Z ℤ Q ℚ C ℂ`);

// Operators and relations, with the spaces that MathML knows for each.
export const OPERATORS = table(`
    times × div ÷ cdot ⋅ cdotp ⋅ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet ∙ cap ∩ cup ∪ uplus ⊎ sqcap ⊓ sqcup ⊔ vee ∨ lor ∨ wedge ∧
    land ∧ setminus ∖ smallsetminus ∖ wr ≀ amalg ⨿ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ bigcirc ◯ boxplus ⊞ boxtimes ⊠ ltimes ⋉
    rtimes ⋊ bowtie ⋈ Join ⋈ dotplus ∔ lhd ⊲ rhd ⊳ unlhd ⊴ unrhd ⊵ neg ¬ lnot ¬ intercal ⊺ veebar ⊻ barwedge ⊼ curlyvee ⋎ curlywedge ⋏
    lt < gt > leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ equiv ≡ sim ∼ simeq ≃ approx ≈ cong ≅ ncong ≇ propto ∝ varpropto ∝ ll ≪ gg ≫ lll ⋘ ggg ⋙
    leqslant ⩽ geqslant ⩾ lesssim ≲ gtrsim ≳ lessgtr ≶ gtrless ≷ nless ≮ ngtr ≯ nleq ≰ ngeq ≱ prec ≺ succ ≻ preceq ⪯ succeq ⪰
    approxeq ≊ asymp ≍ doteq ≐ triangleq ≜ coloneqq ≔ coloneq ≔ eqqcolon ≕ questeq ≟ backsim ∽ thicksim ∼ thickapprox ≈
    in ∈ notin ∉ ni ∋ owns ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ nsubseteq ⊈ nsupseteq ⊉ sqsubset ⊏
    sqsupset ⊐ sqsubseteq ⊑ sqsupseteq ⊒ mid ∣ nmid ∤ parallel ∥ nparallel ∦ perp ⟂ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ Vdash ⊩ nvdash ⊬
    nvDash ⊭ smile ⌣ frown ⌢ between ≬ pitchfork ⋔ trianglelefteq ⊴ trianglerighteq ⊵ vartriangleleft ⊲ vartriangleright ⊳
    to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺
    mapsto ↦ longmapsto ⟼ longrightarrow ⟶ longleftarrow ⟵ longleftrightarrow ⟷ Longrightarrow ⟹ Longleftarrow ⟸ Longleftrightarrow ⟺
    hookrightarrow ↪ hookleftarrow ↩ rightharpoonup ⇀ rightharpoondown ⇁ leftharpoonup ↼ leftharpoondown ↽ rightleftharpoons ⇌
    leftrightharpoons ⇋ rightleftarrows ⇄ leftrightarrows ⇆ rightrightarrows ⇉ leftleftarrows ⇇ twoheadrightarrow ↠ twoheadleftarrow ↞
    rightarrowtail ↣ rightsquigarrow ⇝ leadsto ⇝ upuparrows ⇈ nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖ nrightarrow ↛ nleftarrow ↚
    nRightarrow ⇏ nLeftarrow ⇍ nleftrightarrow ↮ circlearrowleft ↺ circlearrowright ↻ curvearrowright ↷ curvearrowleft ↶ multimap ⊸
    Lsh ↰ Rsh ↱ colon : vcentcolon :`);

// Large operators; the second table's have their limits beside them.
export const LARGE = table(`
    sum ∑ prod ∏ coprod ∐ bigcap ⋂ bigcup ⋃ bigsqcup ⨆ bigvee ⋁ bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ biguplus ⨄`);
export const INTEGRALS = table("int ∫ iint ∬ iiint ∭ iiiint ⨌ oint ∮ oiint ∯ oiiint ∰ smallint ∫ intop ∫");

// What \left and \right, \big and its kin stretch, and what stands alone.
export const DELIMITERS = table(`
    ( ( ) ) [ [ ] ] | | / / < ⟨ > ⟩ { { } } lbrace { rbrace } lbrack [ rbrack ] langle ⟨ rangle ⟩ vert | lvert | rvert | Vert ‖ lVert ‖
    rVert ‖ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lgroup ⟮ rgroup ⟯ lmoustache ⎰ rmoustache ⎱ backslash \\ ulcorner ⌜ urcorner ⌝ llcorner ⌞
    lrcorner ⌟ uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ Updownarrow ⇕ llbracket ⟦ rrbracket ⟧`).set("|", "‖").set("bar", "|");

export const FUNCTIONS = new Set(("sin cos tan cot sec csc arcsin arccos arctan arctg arcctg sinh cosh tanh coth tg ctg sh ch th log ln lg exp arg " +
    "deg dim hom ker sgn sign rank tr diag erf softmax sigmoid Var Cov").split(" "));
// Of these limits stand below.
export const LIMITS = new Set("lim max min sup inf limsup liminf argmax argmin det gcd lcm Pr injlim projlim".split(" "));
export const WORDED = new Map([["limsup", "lim sup"], ["liminf", "lim inf"], ["argmax", "arg max"], ["argmin", "arg min"]]);

// Marks above a base: [character, whether it stretches].
export const ACCENTS = new Map([["hat", ["^"]], ["widehat", ["\u0302", 1]], ["bar", ["\u00af"]], ["vec", ["→"]], ["tilde", ["~"]],
    ["widetilde", ["\u0303", 1]], ["dot", ["˙"]], ["ddot", ["¨"]], ["dddot", ["⃛"]], ["acute", ["´"]], ["grave", ["`"]], ["check", ["ˇ"]],
    ["widecheck", ["\u030c", 1]], ["breve", ["˘"]], ["mathring", ["˚"]], ["overrightarrow", ["→", 1]], ["overleftarrow", ["←", 1]],
    ["overleftrightarrow", ["↔", 1]], ["overbrace", ["⏞", 1]], ["overbracket", ["⎴", 1]], ["overparen", ["⏜", 1]]]);
export const BELOW = new Map([["underbrace", "⏟"], ["underbracket", "⎵"], ["underparen", "⏝"], ["underrightarrow", "→"], ["underleftarrow", "←"]]);
export const ARROWS = new Map([["xrightarrow", "→"], ["xleftarrow", "←"], ["xleftrightarrow", "↔"], ["xRightarrow", "⇒"], ["xLeftarrow", "⇐"],
    ["xLeftrightarrow", "⇔"], ["xmapsto", "↦"], ["xhookrightarrow", "↪"], ["xrightleftharpoons", "⇌"], ["xlongequal", "="]]);

// In em.
export const SPACES = new Map([[",", 1 / 6], ["thinspace", 1 / 6], [":", 2 / 9], [">", 2 / 9], ["medspace", 2 / 9], [";", 5 / 18],
    ["thickspace", 5 / 18], ["!", -1 / 6], ["negthinspace", -1 / 6], ["quad", 1], ["qquad", 2], ["enspace", .5], ["enskip", .5], [" ", 1 / 4],
    ["\n", 1 / 4], ["space", 1 / 4], ["nobreakspace", 1 / 4], ["/", 0]]);

export const FONTS = new Map([["mathrm", "roman"], ["mathup", "roman"], ["mathbf", "bold"], ["mathbfit", "bold_italic"], ["boldsymbol", "bold_italic"],
    ["bm", "bold_italic"], ["pmb", "bold_italic"], ["mathbb", "double"], ["Bbb", "double"], ["mathds", "double"], ["mathcal", "script"],
    ["mathscr", "script"], ["cal", "script"], ["mathfrak", "fraktur"], ["frak", "fraktur"], ["mathsf", "sans"], ["mathtt", "mono"],
    ["mathit", "italic"], ["mathnormal", ""]]);
// For the rest of the group.
export const SWITCHES = new Map([["rm", "roman"], ["bf", "bold"], ["it", "italic"], ["sf", "sans"], ["tt", "mono"], ["cal", "script"],
    ["bfseries", "bold"]]);

// First of capitals, small letters, digits, capital and small Greek letters in Unicode's block of mathematical letters.
const BLOCKS = {
    bold: [0x1d400, 0x1d41a, 0x1d7ce, 0x1d6a8, 0x1d6c2], bold_italic: [0x1d468, 0x1d482, 0x1d7ce, 0x1d71c, 0x1d736],
    script: [0x1d49c, 0x1d4b6], fraktur: [0x1d504, 0x1d51e], double: [0x1d538, 0x1d552, 0x1d7d8],
    sans: [0x1d5a0, 0x1d5ba, 0x1d7e2], mono: [0x1d670, 0x1d68a, 0x1d7f6],
};
// Those that were in Unicode before.
const OLDER = {
    script: "B ℬ E ℰ F ℱ H ℋ I ℐ L ℒ M ℳ R ℛ e ℯ g ℊ o ℴ", fraktur: "C ℭ H ℌ I ℑ R ℜ Z ℨ", double: "C ℂ H ℍ N ℕ P ℙ Q ℚ R ℝ Z ℤ",
};

export function styled(c, font) {
    const block = BLOCKS[font];
    if (!block) return c;
    const older = OLDER[font] ? table(OLDER[font]).get(c) : undefined;
    if (older) return older;
    const ranges = [["A", "Z"], ["a", "z"], ["0", "9"], ["Α", "Ω"], ["α", "ω"]];
    for (let i = 0; i < ranges.length; ++i) {
        const [from, to] = ranges[i];
        if (block[i] && c >= from && c <= to) return String.fromCodePoint(block[i] + c.codePointAt(0) - from.codePointAt(0));
    }
    return c;
}
