/**
 * Lower-case letters that are another form of a lower-case letter, with that letter: `ς` is the `σ` at the end of a word.
 * With them `toLowerCase` becomes what Unicode calls simple case folding.
 */
const forms: ReadonlyMap<string, string> = new Map([
  ['µ', 'μ'],
  ['ſ', 's'],
  ['\u0345', 'ι'],
  ['\u0390', '\u1fd3'],
  ['\u03b0', '\u1fe3'],
  ['ς', 'σ'],
  ['ϐ', 'β'],
  ['ϑ', 'θ'],
  ['ϕ', 'φ'],
  ['ϖ', 'π'],
  ['ϰ', 'κ'],
  ['ϱ', 'ρ'],
  ['ϵ', 'ε'],
  ['ᲀ', 'в'],
  ['ᲁ', 'д'],
  ['ᲂ', 'о'],
  ['ᲃ', 'с'],
  ['ᲄ', 'т'],
  ['ᲅ', 'т'],
  ['ᲆ', 'ъ'],
  ['ᲇ', 'ѣ'],
  ['ᲈ', 'ꙋ'],
  ['ẛ', 'ṡ'],
  ['\u1fbe', 'ι'],
  ['\ufb05', '\ufb06'],
])

const anyForm = /[\u0345µſ\u0390\u03b0ςϐϑϕϖϰϱϵᲀ-ᲈẛ\u1fbe\ufb05]/g

/**
 * A text without its case. What is found in it is at the same place in the text: of all letters, `İ` alone would become two,
 * and is folded as `I` is.
 */
export function foldCase(text: string): string {
  return text
    .replaceAll('İ', 'i')
    .toLowerCase()
    .replaceAll(anyForm, (form) => forms.get(form) ?? form)
}
