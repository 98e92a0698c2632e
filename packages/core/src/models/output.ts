import { type AnyContext, type NextTurn, nextTurns, type OutputPolicy } from '../events/agent-definition.ts'
import type { RuntimeEvent } from '../events/event.ts'
import type { ReplyPart } from '../events/content.ts'
import type { ModelSignal, StreamedSignal } from '../events/signals.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import {
  requireAnswer,
  anyText,
  fields,
  filledText,
  listOf,
  maybe,
  oneOf,
  type Schema,
  plainFunction,
  valueThat,
} from '../values/option.ts'

/** The part of a reply that a text belongs to. */
export interface OutputPart<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  readonly kind: 'text' | 'reasoning'
  /** The value that the application passed to this run. Never recorded. */
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
   * A changed reply in later turns: as the model wrote it (`written`, the default), or as it was shown (`shown`). Reasoning
   * is always as written. So is a reply that the provider keeps (`previousResponseId`, `conversationId`), since the
   * provider gets only new messages.
   */
  readonly nextTurn?: NextTurn | undefined
}

const transform: Schema = fields<OutputTransform>({ name: filledText, begin: plainFunction })

/** Checks how replies are shown. */
export const someOutputStream: Schema = fields<OutputStreamOptions>(
  { transforms: listOf(transform), nextTurn: maybe(oneOf(nextTurns)) },
  { history: 'nextTurn' },
)

/** The part that the ledger records; `undefined` if replies are shown as they are. */
export function toRecordedOutput(options: OutputStreamOptions | undefined): OutputPolicy | undefined {
  if (options === undefined || options.transforms.length === 0) return undefined
  const { transforms, nextTurn } = options
  return {
    transforms: transforms.map(({ name }) => name),
    ...omitUndefined({ nextTurn: nextTurn === 'written' ? undefined : nextTurn }),
  }
}

/** The transforms of an agent, then those of its runtime, whose `nextTurn` wins. */
export function joinOutputs(
  own: OutputStreamOptions | undefined,
  over: OutputStreamOptions | undefined,
): OutputStreamOptions | undefined {
  if (own === undefined || over === undefined) return own ?? over
  const nextTurn = over.nextTurn ?? own.nextTurn
  return { transforms: [...own.transforms, ...over.transforms], ...omitUndefined({ nextTurn }) }
}

type TextSignal = Extract<ModelSignal, { readonly type: 'model_text' | 'model_reasoning' }>
type TextReply = Extract<ReplyPart, { readonly type: 'text' | 'reasoning' }>

/** A part of a reply that is written. */
interface OpenPart {
  readonly type: TextSignal['type']
  readonly part: number
  writers: readonly NamedWriter[]
  written: string
  shown: string
  /** True once the text held back is shown: it ended, or a later part began. */
  isEnded: boolean
}

interface NamedWriter {
  readonly name: string
  readonly writer: OutputWriter
}

/** How the parts of a reply are shown, and described to transforms. */
export interface OutputStageOptions {
  readonly transforms: readonly OutputTransform[]
  readonly about: Omit<OutputPart, 'kind'>
}

/** The finished reply contradicts what was streamed of it. */
export class UnfitReply extends Error {}

/**
 * Passes the text of one reply through the transforms of its agent, part by part, and reports the original text with it. If
 * a transform throws, or does not return a text, this throws a `ConfigurationError`, and no more is shown.
 */
export class OutputStage {
  readonly #options: OutputStageOptions
  readonly #parts = new Map<string, OpenPart>()

  constructor(options: OutputStageOptions) {
    this.#options = options
  }

  /** Returns the signal that replaces an adapter's. */
  take(signal: ModelSignal): readonly StreamedSignal[] {
    switch (signal.type) {
      case 'model_text':
      case 'model_reasoning':
        return [...this.#endBefore(signal.part), ...this.#more(signal)]
      case 'model_tool_input':
      case 'model_tool_request':
        return [...this.#endBefore(signal.part), signal]
      case 'model_finished':
        return this.#finished(signal)
      case 'model_started':
      case 'model_usage':
        return [signal]
    }
  }

  #more({ type, part, text, replaces }: TextSignal): readonly StreamedSignal[] {
    const open = this.#open(type, part)
    // More of a part whose end was shown: all of it is shown again, so that no match is missed between its texts.
    const again = open.isEnded && !replaces ? open.written + text : text
    if (replaces || open.isEnded) {
      Object.assign(open, { writers: this.#begin(type), written: '', shown: '', isEnded: false })
      return this.#wrote(open, again, true)
    }
    return this.#wrote(open, text)
  }

  #open(type: TextSignal['type'], part: number): OpenPart {
    const key = `${type} ${part}`
    const known = this.#parts.get(key)
    if (known) return known
    const open = { type, part, writers: this.#begin(type), written: '', shown: '', isEnded: false }
    this.#parts.set(key, open)
    return open
  }

  #begin(type: TextSignal['type']): readonly NamedWriter[] {
    const { transforms, about } = this.#options
    const kind = type === 'model_text' ? 'text' : 'reasoning'
    return transforms.map(({ name, begin }) => {
      return { name, writer: runTransform(name, 'begin', () => begin({ ...about, kind }), aWriter) }
    })
  }

  /** Text that the model wrote, and what is shown of it. */
  #wrote(open: OpenPart, written: string, replaces = false): readonly StreamedSignal[] {
    let text = written
    for (const { name, writer } of open.writers)
      if (text !== '') text = runTransform(name, 'write', () => writer.write(text), anyText)
    return report(open, { text, written, replaces })
  }

  /** Shows what was held back of the parts before a place: each is whole where a later one comes. */
  #endBefore(place: number): readonly StreamedSignal[] {
    return [...this.#parts.values()].flatMap((open) => (open.part < place ? this.#end(open) : []))
  }

  #end(open: OpenPart): readonly StreamedSignal[] {
    if (open.isEnded) return []
    open.isEnded = true
    let text = ''
    for (const { name, writer } of open.writers) {
      const more = text
      text = more === '' ? '' : runTransform(name, 'write', () => writer.write(more), anyText)
      text += runTransform(name, 'end', () => writer.end(), anyText)
    }
    return report(open, { text, written: '', replaces: false })
  }

  #finished(signal: Extract<ModelSignal, { type: 'model_finished' }>): readonly StreamedSignal[] {
    const before: StreamedSignal[] = []
    const written: TextReply[] = []
    const parts = signal.parts.map((reply): ReplyPart => {
      if (reply.type !== 'text' && reply.type !== 'reasoning') return reply
      const type = reply.type === 'text' ? 'model_text' : 'model_reasoning'
      const open = this.#open(type, reply.part)
      if (!reply.text.startsWith(open.written))
        throw new UnfitReply(`part ${reply.part} is not what was streamed for it`)
      const rest = reply.text.slice(open.written.length)
      if (rest !== '') before.push(...this.#more({ type, part: reply.part, text: rest }))
      before.push(...this.#end(open))
      if (open.shown === reply.text) return reply
      written.push(reply)
      // Data about the model's words, such as the places of citations, does not fit other words.
      return { type: reply.type, part: reply.part, text: open.shown }
    })
    return [...before, { ...signal, parts, ...(written.length > 0 && { written }) }]
  }
}

function report(
  open: OpenPart,
  {
    text,
    written,
    replaces,
  }: { readonly text: string; readonly written: string; readonly replaces: boolean },
): readonly StreamedSignal[] {
  open.written += written
  open.shown += text
  if (text === '' && written === '' && !replaces) return []
  const { type, part } = open
  const differs = text === written ? undefined : written
  return [
    {
      type,
      part,
      text,
      ...(replaces && { replaces: true as const }),
      ...omitUndefined({ written: differs }),
    },
  ]
}

const aWriter = valueThat('an object with the functions write and end', (value) => {
  const { write, end } = Object(value) as Partial<OutputWriter>
  return typeof write === 'function' && typeof end === 'function'
})

function runTransform<T>(transform: string, name: string, code: () => T, check: Schema): T {
  try {
    return requireAnswer(`${name} of the transform ${transform} of outputStream`, code, check)
  } catch (error) {
    const { message, cause } = error as ConfigurationError
    throw new ConfigurationError(`${message} The rest of the reply is not shown.`, { cause })
  }
}

/**
 * Returns an event as subscribers see it: without what the model wrote where `outputStream` showed another text. The ledger
 * holds both.
 */
export function toShownEvent(event: RuntimeEvent): RuntimeEvent {
  if (!('written' in event)) return event
  const { written: _hidden, ...shown } = event
  return Object.freeze(shown)
}
