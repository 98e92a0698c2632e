import { visibleText } from '../../content/visible-text.ts'
import { cleanText } from '../text/clean-text.ts'
import type { CallDeadline } from './call-deadline.ts'

/** How often a server may ask within one call of a tool. */
export interface QuestionLimits {
  readonly elicit: number
  readonly sample: number
}

/** The questions of one server: in the order in which they came, one at a time, and only so many within a call. */
export interface AskedQuestions {
  /** Has a question answered when those before it are. Rejects at once for one too many. */
  inTurn<Answer>(
    kind: keyof QuestionLimits,
    signal: AbortSignal,
    answer: () => Promise<Answer>,
  ): Promise<Answer>
}

/**
 * Bounds what a server asks of the user and of a model: each answer costs money or patience, and the time of its call
 * stands still meanwhile, so that nothing else would end it.
 */
export function askedQuestions(calls: ReadonlySet<CallDeadline>, limits: QuestionLimits): AskedQuestions {
  const asked = new WeakMap<CallDeadline, Record<keyof QuestionLimits, number>>()
  let last: Promise<unknown> = Promise.resolve()
  const take = (kind: keyof QuestionLimits): void => {
    for (const call of calls) {
      const counts = asked.get(call) ?? { elicit: 0, sample: 0 }
      if (counts[kind] >= limits[kind]) continue
      asked.set(call, { ...counts, [kind]: counts[kind] + 1 })
      return
    }
    const why = calls.size === 0 ? 'outside of a call' : `more than ${limits[kind]} times within a call`
    throw new Error(`This client is not asked ${why}.`)
  }
  return {
    async inTurn(kind, signal, answer) {
      take(kind)
      const before = last
      const turn = before.then(() => {
        signal.throwIfAborted()
        return answer()
      })
      last = turn.catch(() => {})
      return await turn
    },
  }
}

const maxTextCharacters = 100_000

/**
 * What a server asks, as a person and a model may be shown it: its texts without what a terminal obeys and a reader does not
 * see. Throws for fields whose names hide something, and for addresses of another kind than web pages, or with a user's name
 * in them, which would pass for the name of a host.
 */
export function shownQuestion<Question>(question: Question): Question {
  return shownValue(question, '') as Question
}

function shownValue(value: unknown, name: string): unknown {
  if (typeof value === 'string') return name === 'url' ? webAddress(value) : shownText(value, name)
  if (Array.isArray(value)) return value.map((each) => shownValue(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, each]) => {
      if (visibleText(field) !== field)
        throw new Error('The question has a field whose name is not all visible.')
      return [field, shownValue(each, field)]
    }),
  )
}

/** The content of an image or a sound is no text. */
function shownText(text: string, name: string): string {
  return name === 'data' || name === 'blob' ? text : cleanText(text, maxTextCharacters)
}

function webAddress(text: string): string {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '')
    return url.href
  throw new Error('The question is at an address that is no web page.')
}
