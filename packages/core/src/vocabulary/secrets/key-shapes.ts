/** A place in a text: from `start` up to, not including, `end`. */
export interface TextSpan {
  readonly start: number
  readonly end: number
}

/** How the keys of services begin, and how many characters of a key come after that at least. */
const prefixes: readonly (readonly [prefix: string, least: number])[] = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Stripe.
  ['sk-', 12],
  ['rk-', 12],
  ['pk-', 12],
  ['sk_live_', 10],
  ['sk_test_', 10],
  ['pk_live_', 10],
  ['pk_test_', 10],
  ['rk_live_', 10],
  // Groq, xAI, Google, Perplexity, Replicate, Together, Fireworks, Cerebras, NVIDIA, Hugging Face.
  ['gsk_', 16],
  ['xai-', 16],
  ['AIza', 30],
  ['ya29.', 16],
  ['pplx-', 16],
  ['r8_', 20],
  ['tgp_v1_', 16],
  ['fw_', 20],
  ['csk-', 16],
  ['nvapi-', 16],
  ['hf_', 20],
  // GitHub, GitLab, npm, Slack, AWS, SendGrid, DigitalOcean, Shopify, PyPI.
  ['ghp_', 20],
  ['gho_', 20],
  ['ghu_', 20],
  ['ghs_', 20],
  ['ghr_', 20],
  ['github_pat_', 20],
  ['glpat-', 16],
  ['npm_', 30],
  ['xoxa-', 10],
  ['xoxb-', 10],
  ['xoxe-', 10],
  ['xoxp-', 10],
  ['xoxr-', 10],
  ['xoxs-', 10],
  ['AKIA', 16],
  ['ASIA', 16],
  ['SG.', 30],
  ['dop_v1_', 20],
  ['shpat_', 20],
  ['pypi-', 20],
]

const webToken = 'eyJ'
/** Characters of the first two parts of a JSON web token at least. */
const webTokenPartMin = 8

const beginning =
  /[srp]k[-_]|gsk_|xai-|AIza|ya29\.|pplx-|r8_|tgp_v1_|fw_|csk-|nvapi-|hf_|gh[pousr]_|github_pat_|glpat-|npm_|xox[abeprs]-|A[KS]IA|SG\.|dop_v1_|shpat_|pypi-|eyJ/g

/**
 * The ranges of keys in a text, recognised by how keys of known services begin; JSON web tokens among them. In order,
 * none within another. A key of a service that marks its keys by nothing is not found. Takes time in proportion to the
 * length of the text, whatever it holds.
 */
export function keysIn(text: string): readonly TextSpan[] {
  const spans: TextSpan[] = []
  let from = 0
  while (from < text.length) {
    beginning.lastIndex = from
    const start = beginning.exec(text)?.index
    if (start === undefined) break
    const end = text.startsWith(webToken, start) ? endOfWebToken(text, start) : endOfKey(text, start)
    if (end.isKey) spans.push({ start, end: end.place })
    from = end.place
  }
  return spans
}

/** A text with other words in place of each key in it. */
export function withoutKeys(text: string, instead: (key: string) => string): string {
  let result = ''
  let from = 0
  for (const { start, end } of keysIn(text)) {
    result += text.slice(from, start) + instead(text.slice(start, end))
    from = end
  }
  return result + text.slice(from)
}

/** Whether a key begins there, and where the search continues. */
interface Look {
  readonly isKey: boolean
  readonly place: number
}

function endOfKey(text: string, start: number): Look {
  const dots = text[start] === 'S' || text[start] === 'y'
  const isKey =
    !endsWord(text, start) &&
    prefixes.some(([prefix, least]) => {
      const behind = start + prefix.length
      return text.startsWith(prefix, start) && endOfRun(text, behind, dots, least) === behind + least
    })
  return { isKey, place: isKey ? endOfRun(text, start, dots) : start + 1 }
}

/** Continues after the checked text, in which no token can begin: else `eyJeyJ…` would be read again and again. */
function endOfWebToken(text: string, start: number): Look {
  const first = endOfRun(text, start, false)
  if (text[first] !== '.') return { isKey: false, place: first }
  const second = endOfRun(text, first + 1, false)
  const isToken = first - start >= webTokenPartMin && second - first > webTokenPartMin && text[second] === '.'
  return isToken ? { isKey: true, place: endOfRun(text, second + 1, false) } : { isKey: false, place: first }
}

/** Whether what looks like a beginning is the end of a word, as in `task-`, and not after a line break that is escaped. */
function endsWord(text: string, start: number): boolean {
  const before = text[start - 1]
  return before !== undefined && /[a-z]/.test(before) && text[start - 2] !== '\\'
}

/** The place after the characters that a key can have, of which no more than `most` are looked at. */
function endOfRun(text: string, from: number, dots: boolean, most = Infinity): number {
  let place = from
  while (place - from < most) {
    const character = text[place]
    const belongs = character !== undefined && (/[\w-]/.test(character) || (dots && character === '.'))
    if (!belongs) break
    place++
  }
  return place
}
