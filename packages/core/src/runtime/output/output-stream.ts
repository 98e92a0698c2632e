import type { NextTurn, OutputPolicy } from '../../vocabulary/agent/output-policy.ts'
import { nextTurns } from '../../vocabulary/agent/output-policy.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import {
  fields,
  filledText,
  listOf,
  maybe,
  oneOf,
  plainFunction,
  type OptionCheck,
} from '../../vocabulary/options/option.ts'

/** Which part of which reply a text is of. */
export interface OutputPart<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  readonly kind: 'text' | 'reasoning'
  /** What the application passed to this run. Never recorded. */
  readonly context: Context
}

/** Takes the text of one part of a reply as it is written. Each answer is a text that may be shown. */
export interface OutputWriter {
  /** Takes more text, and returns what is shown of it and of what was held back before. */
  readonly write: (text: string) => string
  /** The part is whole: returns what is shown of what was held back. */
  readonly end: () => string
}

/** Changes the text of replies before subscribers see it: made by `outputTransform` or `outputMask`, or by hand. */
export interface OutputTransform<in Context = AnyContext> {
  /** Names the transform in the ledger. */
  readonly name: string
  /** Begins a part of a reply, and each of them anew after a failed attempt. */
  readonly begin: (part: OutputPart<Context>) => OutputWriter
}

/** How replies are shown while they are written. */
export interface OutputStreamOptions<Context = AnyContext> {
  /** Each takes what the one before it shows. */
  readonly transforms: readonly OutputTransform<Context>[]
  /**
   * What later turns show the model of a reply whose text was changed: what it wrote (`written`, by default), or what was
   * shown (`shown`). Reasoning is always as it was written, and so is a reply that the provider keeps itself
   * (`previousResponseId`, `conversationId`): only what is new is sent to it.
   */
  readonly nextTurn?: NextTurn | undefined
}

const transform: OptionCheck = fields<OutputTransform>({ name: filledText, begin: plainFunction })

/** Checks how replies are shown. */
export const someOutputStream: OptionCheck = fields<OutputStreamOptions>(
  { transforms: listOf(transform), nextTurn: maybe(oneOf(nextTurns)) },
  { history: 'nextTurn' },
)

/** What the ledger records of it; `undefined` where replies are shown as they are. */
export function recordedOutput(options: OutputStreamOptions | undefined): OutputPolicy | undefined {
  if (options === undefined || options.transforms.length === 0) return undefined
  const { transforms, nextTurn } = options
  return {
    transforms: transforms.map(({ name }) => name),
    ...omitUndefined({ nextTurn: nextTurn === 'written' ? undefined : nextTurn }),
  }
}

/** The transforms of an agent, then those of its runtime, whose `nextTurn` wins. */
export function outputUnder(
  own: OutputStreamOptions | undefined,
  over: OutputStreamOptions | undefined,
): OutputStreamOptions | undefined {
  if (own === undefined || over === undefined) return own ?? over
  const nextTurn = over.nextTurn ?? own.nextTurn
  return { transforms: [...own.transforms, ...over.transforms], ...omitUndefined({ nextTurn }) }
}
