import type { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ModelSignal, ReplyPart, StopReason } from '@tallystick/core/vocabulary'
import { getList, getNumber, getObject, getText } from '../shared/json.ts'
import type { ReplyReader } from '../shared/reply.ts'
import { createContradiction, toStreamFailure, createUnrunCallError } from './failure.ts'
import { toUsageSignal } from './request.ts'
import { awaitsCaller } from './responses-messages.ts'
import {
  classifyItem,
  describeContent,
  type Item,
  type Piece,
  readItemCall,
  readStatedTexts,
  showText,
  toParts,
} from './responses-reply.ts'
import type { ReplyContext } from './responses-request.ts'
import { isCallKind, type KeptResponse, type WireEvent, type WireResponse } from './responses-wire.ts'

const incomplete: { readonly [reason: string]: StopReason } = {
  max_output_tokens: 'max_tokens',
  content_filter: 'content_filtered',
}

/** An item that the terminal event states, and the streamed one that it is. */
interface StatedItem {
  readonly fields: JsonObject
  known: Item | undefined
}

/** Reads one reply, which only a terminal event ends. */
export class ResponsesReader implements ReplyReader<WireEvent> {
  readonly #context: ReplyContext
  readonly #items: Item[] = []
  /** The item that an event's `output_index` means now. Ids do not help: some gateways keep making new ones. */
  readonly #byIndex = new Map<number, Item>()
  #parts = 0
  /** A closed call whose input cannot be read: whether it was cut off is known when the next item or the end comes. */
  #unread: Item | undefined
  #started = false
  #responseId: string | undefined
  #kept: KeptResponse | undefined
  /** The numbers of the events so far, where the server counts them. */
  #sequence: { last: number; counts: boolean } | undefined
  finished = false
  failure: ProviderError | undefined

  constructor(context: ReplyContext) {
    this.#context = context
  }

  /**
   * PROVIDER MAPPING: turns one event into signals. Ignores unknown kinds of events. Throws a `ProviderError` if two streams are
   * spliced together or the stream contradicts itself; sets `failure` if the response failed.
   */
  read(event: WireEvent): readonly ModelSignal[] {
    if (this.finished || this.failure || !isJsonObject(event) || this.#isRepeated(event)) return []
    const { type, response = {} } = event
    const index = getNumber(event, 'output_index') ?? -1
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(response, type === 'response.created')
      case 'response.output_item.added':
        return [...this.#start(), ...this.#addItem(index, event.item)]
      case 'response.output_item.done':
        return [...this.#start(), ...this.#closeItem(index, event.item)]
      case 'response.content_part.added':
        return this.#openPiece(index, event)
      case 'response.output_text.delta':
        return this.#addText(index, event, 'output_text')
      case 'response.refusal.delta':
        return this.#addText(index, event, 'refusal')
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#addReasoning(index, event)
      case 'response.function_call_arguments.delta':
        return this.#addInput(index, event, 'function_call')
      case 'response.custom_tool_call_input.delta':
        return this.#addInput(index, event, 'custom_tool_call')
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done': {
        const item = this.#byIndex.get(index)
        const input = event.arguments ?? event.input
        if (item === undefined || item.closed || typeof input !== 'string') return []
        if (input !== '') item.inputText = input
        item.inputWhole = true
        return []
      }
      case 'response.completed':
      case 'response.incomplete':
        return [...this.#start(response), ...this.#finish(response, type === 'response.completed')]
      case 'response.failed':
        this.failure = toStreamFailure(response.error ?? {})
        return this.#readUsage(response)
      case 'error':
        throw toStreamFailure(event.error ?? event)
      default:
        // The client looks for it in each record; in a list, which some servers send, it finds nothing.
        if (event.error) throw toStreamFailure(event.error)
        return []
    }
  }

  /** True for an event that came before: servers that count their events never give two of them one number. */
  #isRepeated({ sequence_number: number }: WireEvent): boolean {
    if (typeof number !== 'number') return false
    const sequence = this.#sequence
    if (sequence === undefined) {
      this.#sequence = { last: number, counts: false }
      return false
    }
    if (number <= sequence.last) {
      if (number < sequence.last && !sequence.counts) this.#sequence = undefined
      return sequence.counts
    }
    sequence.last = number
    sequence.counts = true
    return false
  }

  #start(response: WireResponse = {}, created = false): ModelSignal[] {
    const id = getText(response, 'id')
    if (this.#started) {
      if (!created || id === this.#responseId || this.#responseId === undefined) return []
      throw createContradiction(
        'a second response began before the first had ended, as when a gateway tries again',
      )
    }
    this.#started = true
    this.#responseId = id
    this.#kept = id === undefined ? undefined : this.#context.kept(id)
    const servedModel = getText(response, 'model')
    return [{ type: 'model_started', ...omitUndefined({ providerMessageId: id, servedModel }) }]
  }

  /** Begins the reply before the signals if its server left the beginning out. */
  #afterStart(signals: ModelSignal[]): ModelSignal[] {
    return this.#started ? signals : [...this.#start(), ...signals]
  }

  #addItem(index: number, given: JsonObject | undefined): ModelSignal[] {
    if (!isJsonObject(given) || typeof given['type'] !== 'string') {
      throw createContradiction(`item ${index} began without a type`)
    }
    const open = this.#byIndex.get(index)
    if (open && !open.closed) {
      if (open.fields['type'] === given['type']) return []
      throw createContradiction(`item ${index} began twice, as two things`)
    }
    const before = this.#releaseUnread()
    this.#openItem(index, given)
    return before
  }

  #openItem(index: number, fields: JsonObject): Item {
    const type = getText(fields, 'type')
    const whole = type !== 'message' && type !== 'reasoning'
    const item: Item = {
      at: index,
      fields,
      pieces: new Map(),
      part: whole ? this.#parts++ : undefined,
      inputText: '',
      inputWhole: false,
      closed: false,
    }
    // A reasoning item has one place in the reply from its start on, shown or not: it goes back in either case.
    if (type === 'reasoning') this.#addPiece(item, 0, 'reasoning')
    this.#items.push(item)
    this.#byIndex.set(index, item)
    return item
  }

  #addPiece(item: Item, index: number, type: string): Piece {
    const kind = type === 'reasoning' ? 'reasoning' : 'text'
    const piece: Piece = { part: this.#parts++, kind, type, text: '', place: '' }
    item.pieces.set(index, piece)
    return piece
  }

  /** Finds the item that continues, or begins it, since some servers leave the beginning out. */
  #continueItem(index: number, type: string): Item {
    const item = this.#byIndex.get(index)
    if (item === undefined) return this.#openItem(index, { type })
    if (item.closed) throw createContradiction(`item ${index} continued after its end`)
    return item
  }

  #openPiece(index: number, { content_index: place = 0, part }: WireEvent): ModelSignal[] {
    const item = this.#byIndex.get(index)
    const type = getText(part, 'type')
    if (item === undefined || classifyItem(item, this.#context) !== 'message' || item.pieces.has(place))
      return []
    if (type !== 'output_text' && type !== 'refusal') return []
    const piece = this.#addPiece(item, place, type)
    return showText(piece, getText(part, type === 'refusal' ? 'refusal' : 'text') ?? '')
  }

  #addText(index: number, { content_index: place = 0, delta }: WireEvent, type: string): ModelSignal[] {
    const item = this.#continueItem(index, 'message')
    const piece = item.pieces.get(place) ?? this.#addPiece(item, place, type)
    return this.#afterStart(showText(piece, typeof delta === 'string' ? delta : ''))
  }

  #addReasoning(index: number, event: WireEvent): ModelSignal[] {
    const item = this.#continueItem(index, 'reasoning')
    const piece = item.pieces.get(0) ?? this.#addPiece(item, 0, 'reasoning')
    const summary = event.type === 'response.reasoning_summary_text.delta'
    const place = summary ? `summary ${event.summary_index ?? 0}` : `content ${event.content_index ?? 0}`
    const delta = typeof event.delta === 'string' ? event.delta : ''
    const paragraph = piece.text !== '' && delta !== '' && piece.place !== place
    if (delta !== '') piece.place = place
    return this.#afterStart(showText(piece, paragraph ? `\n\n${delta}` : delta))
  }

  #addInput(index: number, { delta }: WireEvent, type: string): ModelSignal[] {
    const item = this.#continueItem(index, type)
    if (classifyItem(item, this.#context) !== 'call' || typeof delta !== 'string' || delta === '') return []
    const isFirst = item.inputText === ''
    item.inputText += delta
    if (getText(item.fields, 'type') !== 'custom_tool_call') return this.#showInput(item, delta)
    // Free text becomes JSON, an object with one field, piece by piece.
    const field = this.#context.customField(this.#readToolName(item))
    const begin = isFirst ? `{${JSON.stringify(field)}:"` : ''
    return this.#showInput(item, begin + JSON.stringify(delta).slice(1, -1))
  }

  #showInput(item: Item, text: string): ModelSignal[] {
    return [{ type: 'model_tool_input', part: item.part!, name: this.#readToolName(item), text }]
  }

  #readToolName({ fields }: Item): string {
    const { approvalTool, toolName } = this.#context
    return fields['type'] === 'mcp_approval_request' ? approvalTool : toolName(getText(fields, 'name') ?? '')
  }

  /** The item as it ended wins over what streamed: text that it does not hold is replaced. */
  #closeItem(index: number, given: JsonObject | undefined, known = this.#byIndex.get(index)): ModelSignal[] {
    if (!isJsonObject(given) || typeof given['type'] !== 'string') {
      throw createContradiction(`item ${index} ended without a type`)
    }
    if (known?.closed === true && getText(known.fields, 'id') === getText(given, 'id')) return []
    const open = known?.closed === false
    if (this.#isToldAgain(given, open ? known : undefined)) {
      if (open) known.closed = true
      return []
    }
    const before = open ? [] : this.#releaseUnread()
    const item = open ? known : this.#openItem(index, given)
    item.fields = given
    item.closed = true
    const kind = classifyItem(item, this.#context)
    if (kind === 'provider') return before
    if (kind !== 'call') return [...before, ...this.#showRest(item)]
    const isText = item.inputText !== '' && getText(item.fields, 'type') === 'custom_tool_call'
    return [...before, ...(isText ? this.#showInput(item, '"}') : []), ...this.#readCall(item)]
  }

  /** True for an item that ended before, under another index: ids and content are equal. */
  #isToldAgain(given: JsonObject, open: Item | undefined): boolean {
    const id = getText(given, 'call_id') || getText(given, 'id')
    // Text that was shown stays a part of the reply.
    if (!id || (open !== undefined && open.pieces.size > 0)) return false
    return this.#items.some(
      ({ closed, fields }) =>
        closed &&
        fields['type'] === given['type'] &&
        (getText(fields, 'call_id') || getText(fields, 'id')) === id &&
        describeContent(fields) === describeContent(given),
    )
  }

  #showRest(item: Item): ModelSignal[] {
    return readStatedTexts(item.fields).flatMap(({ type, text }, index): ModelSignal[] => {
      const known = item.pieces.get(index)
      if (known === undefined && text === '') return []
      const piece = known ?? this.#addPiece(item, index, type)
      if (text.startsWith(piece.text)) return showText(piece, text.slice(piece.text.length))
      // An empty text at the end says nothing.
      if (text === '') return []
      piece.text = text
      const shownAs = piece.kind === 'text' ? 'model_text' : 'model_reasoning'
      return [{ type: shownAs, part: piece.part, text, replaces: true }]
    })
  }

  /** Reads a complete call, and reports it if it can be read. */
  #readCall(item: Item): ModelSignal[] {
    // The reply was cut inside the call: the request is not whole.
    if (getText(item.fields, 'status') === 'incomplete') return []
    item.call = readItemCall(item, this.#context, this.#kept)
    if (item.call.malformed !== undefined) {
      this.#unread = item
      return []
    }
    return [{ type: 'model_tool_request', part: item.part!, call: item.call }]
  }

  /** Reports a malformed call: it is complete, since something came after it, or the reply ended normally. */
  #releaseUnread(): ModelSignal[] {
    const unread = this.#unread
    this.#unread = undefined
    return unread?.call ? [{ type: 'model_tool_request', part: unread.part!, call: unread.call }] : []
  }

  #finish(response: WireResponse, completed: boolean): readonly ModelSignal[] {
    const late = completed ? this.#closeItems(response) : this.#cutItems(response)
    const items = this.#items
    const context = this.#context
    const answered = new Set(
      items
        .filter(({ fields }) => fields['type'] === 'shell_call_output')
        .map(({ fields }) => fields['call_id']),
    )
    // The application has to act on it, and nobody does.
    const waiting = items.find(
      (item) =>
        classifyItem(item, context) === 'provider' &&
        awaitsCaller(item.fields) &&
        !answered.has(item.fields['call_id']),
    )
    const usage = this.#readUsage(response)
    if (completed && waiting !== undefined) {
      this.failure = createUnrunCallError(getText(waiting.fields, 'type') ?? '')
      return [...late, ...usage]
    }
    const parts: readonly ReplyPart[] = items
      .flatMap((item) => toParts(item, context, this.#kept))
      .sort((a, b) => a.part - b.part)
    const raw = getText(response.incomplete_details, 'reason')
    const hasCalls = parts.some((part) => part.type === 'tool_call')
    const isRefused = items.some(({ pieces }) =>
      [...pieces.values()].some((piece) => piece.type === 'refusal'),
    )
    const completedReason = hasCalls ? 'tool_use' : isRefused ? 'refused' : 'end'
    const responseId = this.#responseId
    this.finished = true
    return [
      ...late,
      ...usage,
      {
        type: 'model_finished',
        stopReason: completed ? completedReason : (getOwn(incomplete, raw ?? '') ?? 'other'),
        rawStopReason: completed ? 'completed' : (raw ?? 'incomplete'),
        parts,
        ...(responseId !== undefined && {
          providerMessageId: responseId,
          ...omitUndefined({ providerState: context.providerState(responseId) }),
        }),
      },
    ]
  }

  #closeItems(response: WireResponse): ModelSignal[] {
    const signals = this.#releaseUnread()
    // Items that only the terminal event states, or ends.
    let next = Math.max(-1, ...this.#byIndex.keys()) + 1
    for (const { fields, known } of this.#matchItems(response)) {
      if (!known?.closed) signals.push(...this.#closeItem(known?.at ?? next++, fields, known))
    }
    // Calls with complete input, of a server that never ends its items.
    for (const item of this.#items) {
      if (item.closed || classifyItem(item, this.#context) !== 'call' || !item.inputWhole) continue
      item.closed = true
      signals.push(...this.#readCall(item))
    }
    return [...signals, ...this.#releaseUnread()]
  }

  /** A reply that was cut keeps its text. Its last call is dropped, since it may be incomplete. */
  #cutItems(response: WireResponse): ModelSignal[] {
    if (this.#unread) delete this.#unread.call
    this.#unread = undefined
    return this.#matchItems(response).flatMap(({ fields, known }) =>
      known === undefined || known.closed || isCallKind(getText(fields, 'type'))
        ? []
        : this.#closeItem(known.at, fields, known),
    )
  }

  /**
   * Finds the streamed item of each item that the terminal event states. Places say nothing, since gateways leave items out
   * of either. Ids decide, then contents, since some gateways make up new ids. The rest is taken in order, except calls, which
   * are two if their ids and contents differ.
   */
  #matchItems(response: WireResponse): readonly StatedItem[] {
    const stated = getList(response, 'output')
      .filter(isJsonObject)
      .map((fields): StatedItem => ({ fields, known: undefined }))
    const left = new Set(this.#items)
    const contents = (fields: JsonObject): readonly string[] => [describeContent(fields)]
    for (const readKeys of [listIdKeys, contents, listTypeKeys]) {
      const byKey = new Map<string, Item[]>()
      for (const item of left) {
        for (const key of readKeys(item.fields, item)) byKey.set(key, [...(byKey.get(key) ?? []), item])
      }
      for (const item of stated) {
        if (item.known) continue
        const candidates = readKeys(item.fields).flatMap((key) => byKey.get(key) ?? [])
        const found = candidates.find((one) => left.has(one))
        if (found === undefined) continue
        item.known = found
        left.delete(found)
      }
    }
    return stated
  }

  #readUsage({ usage, tool_usage: tools }: WireResponse): ModelSignal[] {
    if (!isJsonObject(usage)) return []
    const reported = getNumber(getObject(tools, 'web_search'), 'num_requests')
    // Some servers do not count searches. To open a page is not one.
    const seen = this.#items.filter(({ fields }) => {
      const action = getText(getObject(fields, 'action'), 'type') ?? 'search'
      return fields['type'] === 'web_search_call' && action === 'search'
    })
    return [toUsageSignal(usage, 'responses', reported ?? (seen.length || undefined))]
  }
}

function listIdKeys(fields: JsonObject): readonly string[] {
  return ['call_id', 'id'].flatMap((name) => {
    const id = getText(fields, name)
    return id ? [`${getText(fields, 'type')} ${name} ${id}`] : []
  })
}

/** A call that ended under another id is another one. */
function listTypeKeys(fields: JsonObject, item?: Item): readonly string[] {
  const type = getText(fields, 'type') ?? ''
  return item?.closed && isCallKind(type) ? [] : [type]
}
