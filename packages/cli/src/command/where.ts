import { finishReasons, outcomes } from '@tallystick/core/vocabulary'
import { getOwn, omitUndefined, readDecimal } from '@tallystick/core/internal'
import type { RunStatus, SummaryFilter } from '@tallystick/ledger'
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { parseMoment, toTime } from './arguments.ts'

/** Conditions on runs, as they were given, and the filter that they make. */
export interface Where {
  readonly texts: readonly string[]
  readonly filter: Omit<SummaryFilter, 'before' | 'limit'>
}

const statuses = ['done', 'failed', 'suspended', 'unfinished'] as const satisfies readonly RunStatus[]

const names =
  'agent=, tool=, outcome=, status=, reason=, session=, subject=, tag=, since= (the last event), started>=, started<, by= (who gave feedback), and score with <, <=, =, >= or >'

export const whereHelp: string = `only runs that fit, such as score<0.5 or tool=pay; may be repeated; there are ${names}`

/** Adds a condition such as `tool=pay`, `since=3d` or `score<0.5` to earlier ones. */
export function addCondition(text: string, { texts, filter }: Where = { texts: [], filter: {} }): Where {
  return { texts: [...texts, text], filter: { ...filter, ...parseCondition(text, filter) } }
}

function parseCondition(text: string, { feedback }: Where['filter']): Where['filter'] {
  const [, name = '', sign = '', value = ''] = /^([a-z]+)(<=|>=|=|<|>)(.+)$/s.exec(text) ?? []
  if (name === 'score') return { feedback: { ...feedback, ...parseScores(sign, value) } }
  if (name === 'started' && (sign === '>=' || sign === '<'))
    return { [sign === '<' ? 'startedUntil' : 'startedSince']: toTime(parseMoment(value), Date.now()) }
  const parse = sign === '=' ? getOwn(conditions, name) : undefined
  if (parse === undefined) throw new InvalidArgumentError(`${text} is no condition. There are ${names}.`)
  return name === 'by' ? { feedback: { ...feedback, by: value } } : parse(value)
}

const conditions: { readonly [name: string]: (value: string) => Where['filter'] } = {
  agent: (agent) => ({ agent }),
  tool: (tool) => ({ tool }),
  outcome: (value) => ({ outcome: parseWord('outcome', value, outcomes) }),
  status: (value) => ({ statuses: [parseWord('status', value, statuses)] }),
  reason: (value) => ({ reason: parseWord('reason', value, finishReasons) }),
  session: (sessionId) => ({ sessionId }),
  subject: (value) => ({ subjects: [value] }),
  tag: (tag) => ({ tag }),
  since: (value) => ({ since: toTime(parseMoment(value), Date.now()) }),
  by: (by) => ({ feedback: { by } }),
}

function parseWord<Word extends string>(name: string, value: string, words: readonly Word[]): Word {
  const word = words.find((each) => each === value)
  if (word === undefined) throw new InvalidArgumentError(`${name} is one of ${words.join(', ')}.`)
  return word
}

export function parseScore(text: string): number {
  const score = readDecimal(text)
  if (Number.isNaN(score)) throw new InvalidArgumentError('A score has to be a number, such as 0.5.')
  return score
}

function parseScores(sign: string, text: string): Where['filter']['feedback'] {
  const score = parseScore(text)
  const isUp = sign.startsWith('>')
  const isDown = sign.startsWith('<')
  const bound = sign.endsWith('=') ? score : findNext(score, isUp)
  return omitUndefined({ minScore: isDown ? undefined : bound, maxScore: isUp ? undefined : bound })
}

/** The nearest number above another, or below it. */
function findNext(from: number, isUp: boolean): number {
  if (from === 0) return isUp ? Number.MIN_VALUE : -Number.MIN_VALUE
  const bits = new BigInt64Array(new Float64Array([from]).buffer)
  bits[0] = (bits[0] ?? 0n) + (from > 0 === isUp ? 1n : -1n)
  return new Float64Array(bits.buffer)[0] ?? from
}
