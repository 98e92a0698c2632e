/** Characters that need no quotes in any shell. */
const plain = /^[\w@%+=:,./-]+$/

/** Controls, line ends, direction marks and invisible characters: what a terminal would act on when it prints or pastes. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u

/**
 * A word for a command line that a person pastes into a shell: as it is, or in quotes that nothing in it can leave. What
 * a terminal would act on is written as escapes, in the quotes that bash, zsh and ksh read (`$'…'`).
 */
export function shellWord(word: string): string {
  if (plain.test(word)) return word
  return unprintable.test(word) ? `$'${escaped(word)}'` : `'${word.replaceAll("'", `'\\''`)}'`
}

function escaped(word: string): string {
  return Array.from(word, (character) => {
    if (character === '\\' || character === "'") return `\\${character}`
    return unprintable.test(character) ? bytesOf(character) : character
  }).join('')
}

function bytesOf(character: string): string {
  return Array.from(
    Buffer.from(character),
    (byte) => String.raw`\x` + byte.toString(16).padStart(2, '0'),
  ).join('')
}
