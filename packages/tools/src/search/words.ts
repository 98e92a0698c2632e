const maxLength = 4_000

/**
 * The words of a text as they are compared: names in camelCase, snake_case and kebab-case fall apart, accents and endings
 * such as those of plurals go.
 */
export function wordsOf(text: string): readonly string[] {
  const apart = text
    .slice(0, maxLength)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
  return Array.from(apart.matchAll(/\p{L}+|\p{N}+/gu), ([word]) => stemOf(word))
}

/** `creating`, `creates` and `create` are one word, and so are `reply` and `replies`. */
function stemOf(word: string): string {
  const stem = word.replace(/(?:ing|ed|es|s|e)$/, '')
  const kept = stem.length < 3 ? word : stem
  return kept.replace(/y$/, 'i')
}
