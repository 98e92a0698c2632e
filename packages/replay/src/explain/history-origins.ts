import { type Message, type RuntimeEvent } from '@tallystick/core'
import { canonicalJson, type EventType } from '@tallystick/core/vocabulary'
import type { MessageOrigin } from './explanation.ts'

/**
 * Follows where the messages of a history come from, event by event. It compares the history before and after an
 * event instead of knowing what each event does: what stays keeps its origin, what is new comes from the event.
 */
export class HistoryOrigins {
  #origins: readonly MessageOrigin[] = []
  readonly #dropped: MessageOrigin[] = []
  /** Events of the attempt that streams, of the results that come in, of a summary, and of inputs that wait. */
  #reply: number[] = []
  #results: number[] = []
  #summary: number[] = []
  readonly #inputs = new Map<string, number>()

  /** Of each message of the history, in its order. */
  get origins(): readonly MessageOrigin[] {
    return this.#origins
  }

  /** Messages that left the history, with nothing in their place. */
  get dropped(): readonly MessageOrigin[] {
    return [...this.#dropped]
  }

  /** Takes an event in; `messages` is the history after it, `undefined` if the event did not change it. */
  follow(event: RuntimeEvent, messages: readonly Message[] | undefined): void {
    this.#note(event)
    if (messages === undefined) return
    const seqs = [...this.#sourcesOf(event), event.seq]
    const { origins, dropped } = originsAfter(this.#origins, messages, { event, seqs })
    this.#origins = origins
    for (const origin of dropped) this.#dropped.push(origin)
  }

  #note(event: RuntimeEvent): void {
    const { seq, type } = event
    if (type === 'model_call_started') [this.#reply, this.#results] = [[], []]
    if (replyTypes.has(type)) this.#reply.push(seq)
    if (type === 'tool_result') this.#results.push(seq)
    if (type === 'guardrail_tripped' && event.on === 'tool_output' && event.action !== 'record') {
      this.#results.push(seq)
    }
    if (type === 'compaction_started') this.#summary = [seq]
    if (type === 'input_received') this.#inputs.set(event.receipt ?? '', seq)
  }

  /** What an event adds to the history comes from these, beside itself. */
  #sourcesOf(event: RuntimeEvent): readonly number[] {
    if (event.type === 'assistant_message_finished') return this.#reply
    if (event.type === 'tool_results_injected') return this.#results
    if (event.type === 'input_settled') return [this.#inputs.get(event.receipt) ?? event.seq]
    return event.type === 'context_compacted' ? this.#summary.splice(0) : []
  }
}

/** Events that a reply is put together from. */
const replyTypes: ReadonlySet<EventType> = new Set<EventType>([
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
  'tool_request_ready',
])

/**
 * Returns where messages come from: earlier ones keep their origin, a changed one has its origin and the event, and the
 * rest come from `seqs`; the first of these replaces all that are gone.
 */
function originsAfter(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  { event, seqs }: { readonly event: RuntimeEvent; readonly seqs: readonly number[] },
): { readonly origins: readonly MessageOrigin[]; readonly dropped: readonly MessageOrigin[] } {
  const { found, lost } = matched(before, messages, { wordForWord: event.type === 'agent_handed_off' })
  const changedFrom = originsByPlace(before, messages, event)
  const unclaimed = new Set(lost)
  const origins = messages.map((message, index): MessageOrigin => {
    const same = found.get(message)
    if (same) return same
    const changed = changedFrom(index)
    if (changed && unclaimed.delete(changed)) {
      return { ...changed, message, seqs: [...changed.seqs, event.seq] }
    }
    const replaced = event.type === 'history_edited' ? [] : [...unclaimed]
    for (const origin of replaced) unclaimed.delete(origin)
    return { message, seqs, replaced }
  })
  return { origins, dropped: [...unclaimed] }
}

/**
 * Messages that stood there before, and those of before that are gone. Where messages were written down anew, as those
 * that are handed over, the ones that say the same word for word are the same.
 */
export function matched(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  { wordForWord }: { readonly wordForWord: boolean },
): {
  readonly found: ReadonlyMap<Message, MessageOrigin>
  readonly lost: readonly MessageOrigin[]
} {
  const found = new Map<Message, MessageOrigin>()
  const left = new Map(before.map((origin) => [origin.message, origin]))
  for (const message of messages) {
    const same = left.get(message)
    if (same) found.set(message, same)
    left.delete(message)
  }
  const byText = Map.groupBy(wordForWord ? left.values() : [], ({ message }) => textOf(message))
  for (const message of byText.size > 0 ? messages : []) {
    if (found.has(message)) continue
    const same = byText.get(textOf(message))?.shift()
    if (same === undefined) continue
    found.set(message, { ...same, message })
    left.delete(same.message)
  }
  return { found, lost: [...left.values()] }
}

/** Of a message that is new, by its place: the one of before that was changed into it, or `undefined`. */
function originsByPlace(
  before: readonly MessageOrigin[],
  messages: readonly Message[],
  event: RuntimeEvent,
): (index: number) => MessageOrigin | undefined {
  if (event.type === 'guardrail_tripped' && before.length === messages.length) return (index) => before[index]
  if (event.type !== 'history_edited') return () => undefined
  const removed = new Set(event.edits.flatMap((edit) => (edit.message ? [] : [edit.index])))
  const kept = before.filter((_origin, index) => !removed.has(index))
  return (index) => kept[index]
}

function textOf(message: Message): string {
  return canonicalJson(message)
}
