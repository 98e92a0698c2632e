import {
  type AnyContext,
  type NextTurn,
  nextTurns,
  type OutputPolicy,
} from '../../events/agent-definition.ts'
import type { RunId } from '../../values/ids.ts'
import { omitUndefined } from '../../values/json.ts'
import {
  fields,
  filledText,
  listOf,
  maybe,
  oneOf,
  plainFunction,
  type OptionCheck,
} from '../../values/option.ts'

/** The part of a reply that a text belongs to. */
export interface OutputPart<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  readonly kind: 'text' | 'reasoning'
  /** What the application passed to this run. Never recorded. */
  readonly context: Context
}

/** Changes the text of one part of a reply while it is written. Every text that it returns may be shown. */
export interface OutputWriter {
  /** Gets the next text; returns what is shown of it and of the text that was held back. */
  readonly write: (text: string) => string
  /** Called when the part is whole; returns what is shown of the text that was held back. */
  readonly end: () => string
}

/** Changes the text of replies before subscribers see it. Made by `outputTransform`, by `outputMask`, or by hand. */
export interface OutputTransform<in Context = AnyContext> {
  /** Names the transform in the ledger. */
  readonly name: string
  /** Begins a part of a reply. After a failed attempt, each part begins again. */
  readonly begin: (part: OutputPart<Context>) => OutputWriter
}

/** How replies are shown while they are written. */
export interface OutputStreamOptions<Context = AnyContext> {
  /** Each gets the text that the one before it shows. */
  readonly transforms: readonly OutputTransform<Context>[]
  /**
   * What the model sees of a changed reply in later turns: what it wrote (`written`, the default), or what was shown
   * (`shown`). Reasoning is always as it was written. So is a reply that the provider keeps (`previousResponseId`,
   * `conversationId`), since it gets only new messages.
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
