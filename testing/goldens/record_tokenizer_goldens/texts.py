"""The texts that tokenizers are compared on. All written for this purpose."""
import random
import unicodedata

SCRIPTS = {
    "latin": "The quick brown fox isn't lazy: we've seen it JUMP over 3 dogs, and they'll say so — naïve café, Straße, œuvre, Łódź.",
    "greek": "Η γλώσσα είναι παλιά· πόσο κοστίζει; Ὁ λόγος 25,50 ευρώ.",
    "cyrillic": "Сегодня хорошая погода, не правда ли? Ёлка стоит 1200 рублей. Їжак і ґанок.",
    "arabic": "اللغة العربية تُكتب من اليمين إلى اليسار، والعدد ١٢٣٤ يُقرأ هكذا؟",
    "hebrew": "שלום עולם, מה נשמע? בְּרֵאשִׁית 42.",
    "devanagari": "नमस्ते दुनिया, आज मौसम कैसा है? संख्या १२३४५ है।",
    "tamil": "வணக்கம் உலகம், இது ஒரு சோதனை. க்ஷ ௧௨௩",
    "thai": "สวัสดีชาวโลก วันนี้อากาศดีมาก ราคา ๑๒๓ บาท",
    "georgian": "გამარჯობა მსოფლიო, როგორ ხარ? ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ 2024.",
    "armenian": "Բարեւ աշխարհ, ինչպե՞ս ես։ Գինը 500 դրամ է։",
    "hangul": "안녕하세요 세계, 오늘은 날씨가 좋네요. 가격은 3만원입니다. ㅋㅋㅋ",
    "han": "今天天气很好，我想在苹果公司工作1314151天～。二〇二四年，人人々々。「你好」！𠀀𠮷",
    "kana": "こんにちは世界、カタカナとひらがな。ﾊﾝｶｸ ラーメンは９８０円です！",
    "khmer": "សួស្តីពិភពលោក កាន់តែពិសេស ១២៣",
    "ethiopic": "ሰላም ለዓለም፣ እንዴት ነህ? ፩፪፫",
    "bengali": "ওহে বিশ্ব, কেমন আছো? ১২৩৪ টাকা।",
}

EMOJI = "🚀 ok 😶‍🌫️ 👩🏽‍💻👨‍👩‍👧‍👦 ✅🦙🦙 🇩🇪🇯🇵 1️⃣ #️⃣ ❤️‍🔥 (ʘ‿ʘ) ¯\\_(ツ)_/¯"

CODE = '''#include <vector>
template <typename T>\tstruct Box { T value{}; };   // a comment
int main(int argc, char** argv) {
    for (int i = 0; i < 1024; ++i) { total += a[i] * 0x1F; }
\tif (x != nullptr && y->z >= 3.14e-10) return -1;


    return printf("%d\\n", total);
}
def f(self, *args, **kw): return {k: v for k, v in kw.items() if k not in ("a", 'b')}
SELECT * FROM users WHERE id=42 AND name LIKE '%o''Brien%'; -- done
<div class="a-b_c" id='x'>&nbsp;&#39;</div>\r\nhttps://example.org/a/b?q=1&r=%20#top user@example.org
'''

BLANKS = ("a  b   c    d     e      f       g        h\n"
          "\n\n \n  \n   \n\t\n\t\t\n \t \n\r\n\r\n  \r\n x\t\ty \t z\n"
          "    four\n        eight\n\ttab\n \tmixed\n" + " " * 40 + "x" + " " * 33 + "\n" + "\n" * 9 + "end   \n\n  ")

ODD = [
    "", " ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", " \n", "\n ", " \n ", "a", " a", "a ", "\ta", "a\n", "a\nb", "a \n b",
    "'s", "'S", "it's IT'S I'LL we'Ve y'all d'D 'Re'M 'tis 'ſ x'ſy ’s", "don't''t 'll'", "a's's'S", "\u212a's 5's",
    "1", "12", "123", "1234", "12345", "123456", "1234567", " 1", "1 2", "1,234.56", "x1y22z333", "½ ⅔ Ⅷ ② ³ 1²3", "٣٤٥٦ ४५६७",
    "a\u00a0b\u1680c\u2003d\u2028e\u2029f\u202fg\u205fh\u3000i\u0085j\u200bk\u180el\ufeffm", "\u0085", "\u180e", "\u00a0\u00a0 x",
    "\u3000日本", "  \u3000x", "\x0b\x0c\x1c\x1d\x1e\x1f", "a\x00b\x00\x00", "\x7f\x80\x9f", "e\u0301 e\u0301e\u0301 \u0301x \u0301\u0301",
    "ǅ ǈungla ʰʷ ª º ﬁ ﬃ Ⓐⓑ 𝔄𝔟𝐂", "々〇〻 〆 㐀 鿿 龥 龦 豈 𪜀", "㍿ ㈱ ⼀ ⺀ ㊀", "ーーア ヽヾ ゝゞ ゛゜ ヿゟ", "ㄅㄆ 한 한 한글한자韓字",
    "!!!", "!a", "#a1", "$x _y", "...a", "?!?!", " !", "  !!", "a!b", "-->", "=====", "+-*/=<>|~^`", "“quoted” ‘single’ «g» „low“ … — –",
    "！？，。；：（）【】《》", "€5 £6 ¥7 ₹8 ©®™ §¶ °", "∑∏√∞≈≠≤≥ ←↑→↓ ▁▂█", "a_b-c.d/e\\f", "CamelCaseHTTPServer XMLHttpRequest iPhone",
    "HELLO world Hello WORLD hElLo", "ΑΒΓ абВГ ԱԲգդ ᎣᏏᏲ", "\u2581\u2581x \u2581y", "Ġhello Ċ", "<0x0A><unk><s></s>", "<|endoftext|>",
    "\U000e0041\ue000\ufffe\U0010ffff", "\u200d\u200e\u200f\u2066\u2069", "؟، ۔ ׃ ། ።", "ᠠᠡ᠎ᠢ ꀀ ꓐ ߊ ⴰ 𞤀𞤢 𐐀𐐨", "한국어　테스트",
    " " * 200 + "x", "\n" * 100, "a" * 300, "ab" * 200, "1" * 50, "!" * 120, "の" * 70, " a" * 60, "\t \t \t" * 10,
]


def random_texts(count, seed):
    """Short texts of characters drawn from pools where pre-tokenizers take decisions."""
    rng = random.Random(seed)
    pools = [
        "abcxyzABCXYZ", "0123456789", " ", " ", "\n\r\t", "'’\"", "!?.,;:-_/\\()[]{}<>@#$%^&*+=|~`", "stremdlvSTREMDLVſK",
        "äöüßéñçøœŁ", "αβγΔΩ", "джЖЯё", "中文字龥々〇", "ひらカター", "한글ㅋ", "ابتَ", "אבְּ", "कखाि्", "กขา่", "\u0301\u0308\u20dd",
        "\u00a0\u3000\u2009\u0085\u180e\u200b", "😀👍🏽\u200d\ufe0f🇩", "½²Ⅷ٣५", "ǅʰªº", "€±∑→■", "«»“”…、。！",
    ]
    # Any assigned character, but not letters that Unicode added after version 13: engines differ in age.
    assigned = [c for c in range(0x20, 0x20000) if unicodedata.category(chr(c)) not in ("Cn", "Cs") and
                unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]
    out = []
    for _ in range(count):
        chars = []
        for _ in range(rng.randint(1, 24)):
            if rng.random() < 0.15:
                chars.append(chr(rng.choice(assigned)))
            else:
                pool = rng.choice(pools)
                chars.extend(rng.choice(pool) for _ in range(rng.choice((1, 1, 1, 2, 3, 5))))
        out.append("".join(chars))
    return out


def all_texts():
    return (list(SCRIPTS.values()) + [EMOJI, CODE, BLANKS, "\n".join(SCRIPTS.values()) + "\n" + EMOJI + "\n" + CODE + BLANKS] +
            ODD + random_texts(160, 20260101))
