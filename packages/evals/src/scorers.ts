import type { Agent, OutputSchema, RunOptions, RunResult, RuntimeEvent } from '@tallystick/core'
import { createSchemaReader, omitUndefined, option, requireOptions } from '@tallystick/core/internal'
import { type Json, type JsonObject, toCanonicalJson } from '@tallystick/core/vocabulary'
import type { EvalCase } from './case.ts'
import { toCallKey } from './served-agent.ts'

/** A run of a case, as scorers see it. */
export interface ScoredRun {
  readonly case: EvalCase
  /** Names the agent among those that are compared. */
  readonly agent: string
  readonly result: RunResult
  /** The text of the answer. */
  readonly text: string
  /** The answer by the schema of the agent; its text without one. */
  readonly output: Json
  /** The calls that the model asked for, in order; without those of child runs. */
  readonly calls: readonly { readonly tool: string; readonly input: JsonObject }[]
  readonly events: readonly RuntimeEvent[]
  readonly evaluation: {
    readonly name: string
    /** Runs an agent of the scorer in the ledger of the evaluation; interrupted if the evaluation is stopped. */
    run(agent: Agent<unknown>, input: string, options?: RunOptions): Promise<RunResult>
  }
}

/** A score from 0, the worst, to 1; `true` is 1. With a note, that says why. */
export type Score =
  | number
  | boolean
  | {
      readonly score: number | boolean
      readonly note?: string | undefined
      readonly costUsd?: number | undefined
    }

/** Judges one run. A throw counts as no score, and is reported. */
export type Scorer = (run: ScoredRun) => Score | Promise<Score>

const { anyText, fields, filledText, maybe, trueOrFalse, valueThat } = option

/** The answer is what the case expects: the same text, or the same JSON. */
export function exact(options: { readonly ignoreCase?: boolean | undefined } = {}): Scorer {
  requireOptions(
    'exact',
    fields<{ readonly ignoreCase?: boolean | undefined }>({ ignoreCase: maybe(trueOrFalse) }),
    options,
  )
  const { ignoreCase = false } = options
  const normalize = (text: string): string => (ignoreCase ? text.trim().toLowerCase() : text.trim())
  return (run) => {
    const expected = requireExpected(run)
    if (typeof expected === 'string') {
      const found = typeof run.output === 'string' ? run.output : run.text
      return normalize(found) === normalize(expected)
    }
    return toCanonicalJson(run.output) === toCanonicalJson(expected)
  }
}

function requireExpected({ case: { id, expected } }: ScoredRun): Json {
  if (expected !== undefined) return expected
  throw new Error(`Case ${id} has no expected answer.`)
}

/** The answer has these texts, or without any the expected one, in upper or lower case: the share of them that it has. */
export function contains(...texts: readonly string[]): Scorer {
  requireOptions('contains', option.listOf(filledText), texts, 'the texts')
  return (run) => {
    const wanted = texts.length > 0 ? texts : [requireText(run)]
    const text = run.text.toLowerCase()
    const missing = wanted.filter((each) => !text.includes(each.toLowerCase()))
    const score = (wanted.length - missing.length) / wanted.length
    return { score, ...(missing.length > 0 && { note: `missing: ${missing.join(', ')}` }) }
  }
}

function requireText(run: ScoredRun): string {
  const expected = requireExpected(run)
  if (expected === '')
    throw new Error(`Case ${run.case.id} expects an empty text, which every answer contains. Use exact().`)
  return typeof expected === 'string' ? expected : toCanonicalJson(expected)
}

/** The text of the answer matches. The pattern is of the developer: one that goes back over its text may take for ever. */
export function regex(pattern: RegExp): Scorer {
  requireOptions(
    'regex',
    valueThat('a RegExp', (value) => value instanceof RegExp),
    pattern,
    'the pattern',
  )
  const { source, flags } = pattern
  // One that is global or sticky would remember where it was.
  const own = new RegExp(source, flags.replaceAll(/[gy]/g, ''))
  return ({ text }) => own.test(text)
}

/** The answer fits a schema: zod or another Standard Schema, or a JSON Schema. A text is read as JSON, unless it fits as it is. */
export function schema(given: OutputSchema): Scorer {
  const aSchema = valueThat(
    'a schema: z.object({ … }), another Standard Schema, or a JSON Schema',
    (value) => (typeof value === 'object' || typeof value === 'function') && value !== null,
  )
  requireOptions('schema', aSchema, given, 'the schema')
  const reader = createSchemaReader('scorer schema', given)
  return async ({ output }) => {
    const read = await reader.read(output)
    if (!('error' in read)) return true
    const parsed = typeof output === 'string' ? parseJson(output) : undefined
    const again = parsed === undefined ? read : await reader.read(parsed)
    return 'error' in again ? { score: false, note: again.error } : true
  }
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

type MadeCall = ScoredRun['calls'][number]
type WantedCall = NonNullable<ToolCallsOptions['expected']>[number]
type Fits = (made: MadeCall, wanted: WantedCall) => boolean

/** How calls are compared. */
export interface ToolCallsOptions {
  /** Default: the calls of the recorded run. An input that is left out fits any. */
  readonly expected?:
    | readonly { readonly tool: string; readonly input?: JsonObject | undefined }[]
    | undefined
  /** `strict` (the default): these calls in this order. `any_order`: these calls. `includes`: these calls in this order, among others. */
  readonly order?: 'strict' | 'any_order' | 'includes' | undefined
  /** Compares the inputs, too. Default: true. */
  readonly inputs?: boolean | undefined
}

/** The calls of the run are the expected ones, by tool and input: the share that is, of the calls made and expected. */
export function toolCalls(options: ToolCallsOptions = {}): Scorer {
  requireOptions(
    'toolCalls',
    fields<ToolCallsOptions>({
      expected: maybe(
        option.listOf(fields<WantedCall>({ tool: filledText, input: maybe(option.anyObject) })),
      ),
      order: maybe(option.oneOf(['strict', 'any_order', 'includes'])),
      inputs: maybe(trueOrFalse),
    }),
    options,
  )
  const { expected: given, order = 'strict', inputs = true } = options
  return ({ case: { id, calls: recorded }, calls }) => {
    const expected = given ?? recorded?.filter(({ child }) => child !== true)
    if (expected === undefined) throw new Error(`Case ${id} has no recorded calls to compare with.`)
    const fits: Fits = (made, wanted) =>
      made.tool === wanted.tool &&
      (!inputs ||
        wanted.input === undefined ||
        toCallKey(made) === toCallKey({ ...made, input: wanted.input }))
    const found =
      order === 'any_order' ? countAnywhere(calls, expected, fits) : countInOrder(calls, expected, fits)
    const all = order === 'includes' ? expected.length : Math.max(calls.length, expected.length)
    if (all === 0 || found === all) return true
    const names = (list: readonly { readonly tool: string }[]): string =>
      list.map(({ tool }) => tool).join(', ') || 'none'
    return { score: found / all, note: `called ${names(calls)}; expected ${names(expected)}` }
  }
}

/** The most calls that both lists have in the same order. */
function countInOrder(made: readonly MadeCall[], wanted: readonly WantedCall[], fits: Fits): number {
  let row: readonly number[] = Array.from({ length: wanted.length + 1 }, () => 0)
  for (const each of made) {
    const next = [0]
    for (const [index, other] of wanted.entries())
      next.push(fits(each, other) ? (row[index] ?? 0) + 1 : Math.max(next[index] ?? 0, row[index + 1] ?? 0))
    row = next
  }
  return row.at(-1) ?? 0
}

function countAnywhere(made: readonly MadeCall[], wanted: readonly WantedCall[], fits: Fits): number {
  const left = [...made]
  // Those that say their input choose first: one that does not takes any call.
  const choosing = wanted.toSorted((a, b) => Number(a.input === undefined) - Number(b.input === undefined))
  return choosing.filter((each) => {
    const place = left.findIndex((other) => fits(other, each))
    if (place !== -1) left.splice(place, 1)
    return place !== -1
  }).length
}

/** A score as a number and a note; an error for what is none. */
export function readScore(given: Score): {
  readonly score: number
  readonly note?: string
  readonly costUsd?: number
} {
  const {
    score: value,
    note,
    costUsd,
  } = typeof given === 'object' && given !== null ? given : { score: given }
  const score = typeof value === 'boolean' ? Number(value) : value
  if (typeof score !== 'number' || !(score >= 0 && score <= 1))
    throw new Error(
      `It returned ${describeValue(value)}, and a score is a number from 0 to 1, true or false.`,
    )
  if (anyText(note ?? '') !== undefined) throw new Error('It returned a note that is not a text.')
  if (costUsd !== undefined && !(Number.isFinite(costUsd) && costUsd >= 0))
    throw new Error(`It returned the costUsd ${describeValue(costUsd)}, and a cost is a number from 0.`)
  return { score, ...omitUndefined({ note, costUsd }) }
}

function describeValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : value === null ? 'null' : typeof value
}
