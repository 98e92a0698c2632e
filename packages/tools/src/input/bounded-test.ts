import { RE2JS } from 're2js'

/**
 * Tries a regular expression of JavaScript on texts, in time that grows with the text alone: thirty characters, which a
 * model wrote, can keep JavaScript's own engine busy longer than any process lives. `undefined` for an expression that
 * cannot be tried so: one that looks ahead or behind, refers back, or repeats more than 1,000 times.
 */
export function boundedTest(
  source: string,
  { ignoresCase = false }: { readonly ignoresCase?: boolean } = {},
): ((text: string) => boolean) | undefined {
  // It would take a named reference back for the letters of its name.
  if (/\\k</.test(source)) return undefined
  try {
    const flags = ignoresCase ? RE2JS.CASE_INSENSITIVE : 0
    const pattern = RE2JS.compile(RE2JS.translateRegExp(inSameWords(source)), flags)
    return (text) => pattern.matcher(text).find()
  } catch {
    return undefined
  }
}

/** What `.` and `\s` mean in JavaScript, where the other engine takes fewer line ends and spaces for such. */
const lineEnds = '\\n\\r\\x{2028}\\x{2029}'
const spaces = `\\t\\v\\f \\x{a0}\\x{feff}\\p{Zs}${lineEnds}`

function inSameWords(source: string): string {
  return source.replaceAll(/\\.|\[\^?(?:\\.|[^\]\\])*\]?|\./gsu, (token) => {
    if (token === '.') return `[^${lineEnds}]`
    if (token === '\\s') return `[${spaces}]`
    if (token === '\\S') return `[^${spaces}]`
    return token.startsWith('[')
      ? token.replaceAll(/\\./gsu, (each) => (each === '\\s' ? spaces : each))
      : token
  })
}
