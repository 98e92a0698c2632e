import { ProviderError } from '@tallystick/core'
import { isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type { Json, JsonObject, ModelRefusal, ModelSignal, ReplyPart } from '@tallystick/core/vocabulary'
import { formatFailureText } from '../shared/failure.ts'
import { toItems, getList, getNumber, getObject, omitFields, getText } from '../shared/json.ts'
import type { ReplyReader } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import type { WireBlock, WireEvent, WireMessage } from './client.ts'
import { toStreamFailure } from './failure.ts'
import {
  type Block,
  closeBlock,
  cutsReply,
  extendBlock,
  mergeUsage,
  openBlock,
  countPromptTokens,
  showText,
  toPart,
  toStopReason,
  toUsageSignal,
  withContainer,
  withProviderState,
} from './reply.ts'

/** A history has one entry for each block of thinking; these are enough to tell what happened. */
const maxTransformations = 20

/** Reads one reply, which only the terminal event ends. */
export class AnthropicReader implements ReplyReader<WireEvent> {
  readonly #names: ToolNames
  readonly #blocks: Block[] = []
  /** The block that an event's `index` means now. */
  readonly #byIndex = new Map<number, Block>()
  /** A closed call whose input cannot be read: the next block, or the end, tells whether it was cut off. */
  #unread: Block | undefined
  #started = false
  #messageId: string | undefined
  #usage: JsonObject = {}
  /** Tokens of the first prompt, which the message's start says. */
  #firstPrompt: number | undefined
  #container: JsonObject | undefined
  #rawStopReason: string | undefined
  /** Notes on the whole reply, by the kind of part that they become. */
  readonly #notes: Map<string, JsonObject>
  finished = false

  /** `names` are those of the request. */
  constructor(names: ToolNames, notes: ReadonlyMap<string, JsonObject> = new Map()) {
    this.#names = names
    this.#notes = new Map(notes)
  }

  /**
   * PROVIDER MAPPING: turns one event into signals. Ignores unknown kinds of events. Throws a `ProviderError` if two streams
   * are spliced together, or if the stream contradicts itself or reports a failure.
   */
  read(event: WireEvent): readonly ModelSignal[] {
    if (this.finished || !isJsonObject(event)) return []
    const index = getNumber(event, 'index') ?? -1
    switch (event.type) {
      case 'content_block_delta': {
        const block = this.#byIndex.get(index)
        if (block === undefined || block.closed)
          throw createContradiction(`block ${index} continued without being open`)
        return extendBlock(block, event.delta ?? {}, this.#names)
      }
      case 'message_start':
        return this.#startMessage(event.message ?? {})
      case 'content_block_start':
        return this.#startBlock(index, event.content_block)
      case 'content_block_stop':
        return this.#stopBlock(index)
      case 'message_delta': {
        // Parts of the history that the vendor removed before the model saw it.
        if (getList(event.context_management, 'applied_edits').length > 0)
          this.#notes.set('context_management', event.context_management!)
        this.#noteTransformations(event.input_transformations)
        const { delta = {} } = event
        this.#rawStopReason = getText(delta, 'stop_reason') ?? this.#rawStopReason
        this.#container = getObject(delta, 'container') ?? this.#container
        const details = getObject(delta, 'stop_details')
        // A token in it is worth money, and is not kept.
        if (details) this.#notes.set('stop_details', omitFields(details, ['fallback_credit_token']))
        return this.#updateUsage(event.usage)
      }
      case 'message_stop':
        return this.#finish()
      case 'error':
        throw toStreamFailure(event.error ?? {})
      default:
        return []
    }
  }

  #startMessage(message: WireMessage): readonly ModelSignal[] {
    if (this.#started) {
      if (message.id === this.#messageId) return []
      throw createSplicedError('a second message began before the first had ended')
    }
    this.#started = true
    this.#noteTransformations(message.input_transformations)
    this.#messageId = getText(message, 'id')
    this.#rawStopReason = getText(message, 'stop_reason')
    this.#container = getObject(message, 'container')
    const servedModel = getText(message, 'model')
    // Recorded with the beginning of the reply, since a reply that breaks off has no parts that could say it.
    const { length: dropped } = toItems(message.input_transformations).filter(
      (one) => getText(one, 'type') === 'thinking_dropped',
    )
    const warning = `Anthropic left ${dropped === 1 ? 'a block' : `${dropped} blocks`} of earlier thinking out of what the model read.`
    const signals: ModelSignal[] = [
      {
        type: 'model_started',
        ...omitUndefined({ providerMessageId: this.#messageId, servedModel }),
        ...(dropped > 0 && { warnings: [warning] }),
      },
    ]
    const whole = Array.isArray(message.content) ? (message.content as readonly WireBlock[]) : []
    whole.forEach((block, index) => {
      signals.push(...this.#startBlock(index, block), ...this.#stopBlock(index))
    })
    this.#firstPrompt = isJsonObject(message.usage) ? countPromptTokens(message.usage) : undefined
    return [...signals, ...this.#updateUsage(message.usage)]
  }

  #startBlock(index: number, start: WireBlock | undefined): ModelSignal[] {
    if (!isJsonObject(start) || typeof start.type !== 'string')
      throw createContradiction(`block ${index} began without a type`)
    if (this.#byIndex.get(index)?.closed === false) throw createSplicedError(`block ${index} began twice`)
    const before = this.#releaseUnread()
    const block = openBlock(this.#blocks.length, start)
    this.#blocks.push(block)
    this.#byIndex.set(index, block)
    return [...before, ...(block.text === '' ? [] : showText(block, block.text))]
  }

  #stopBlock(index: number): ModelSignal[] {
    const block = this.#byIndex.get(index)
    if (block === undefined || block.closed) return []
    closeBlock(block, this.#names, this.#container)
    if (block.call === undefined) return []
    if (block.call.malformed === undefined)
      return [{ type: 'model_tool_request', part: block.part, call: block.call }]
    this.#unread = block
    return []
  }

  /** Records which thinking of the history the vendor left out, or let through although it belongs to another beginning. */
  #noteTransformations(transformations: Json | undefined): void {
    const all = toItems(transformations)
    if (all.length === 0) return
    this.#notes.set('input_transformations', { count: all.length, first: all.slice(0, maxTransformations) })
  }

  #updateUsage(usage: JsonObject | null | undefined): readonly ModelSignal[] {
    if (!isJsonObject(usage)) return []
    this.#usage = mergeUsage(this.#usage, usage)
    // The model was asked once, and again after each batch of results of the vendor's own tools.
    const isResult = (block: Block | undefined): boolean =>
      block?.kind === 'provider' && (getText(block.fields, 'type') ?? '').endsWith('_tool_result')
    const again = this.#blocks.filter((block, place) => !isResult(block) && isResult(this.#blocks[place - 1]))
    return [toUsageSignal(this.#usage, { count: 1 + again.length, firstPrompt: this.#firstPrompt })]
  }

  #finish(): readonly ModelSignal[] {
    const rawStopReason = this.#rawStopReason
    if (rawStopReason === undefined) {
      throw new ProviderError({
        class: 'truncated',
        message:
          'Anthropic ended its reply without a stop reason, so it may be incomplete. Try the call again.',
        retryable: true,
      })
    }
    const stopReason = toStopReason(rawStopReason)
    if (stopReason === 'tool_use' && !this.#blocks.some(({ kind }) => kind === 'call')) {
      throw createProtocolError(
        'Anthropic ended its reply with the stop reason tool_use, but the reply has no call of a tool. Try the call again, and check the gateway in front of Anthropic, if there is one.',
      )
    }
    // A reply that was cut inside a call drops it.
    if (cutsReply(stopReason) && this.#unread) delete this.#unread.call
    const late = this.#releaseUnread()
    this.finished = true
    return [
      ...late,
      {
        type: 'model_finished',
        stopReason,
        rawStopReason,
        parts: this.#toParts(),
        ...omitUndefined({ providerMessageId: this.#messageId }),
        ...(stopReason === 'refused' && { refusal: readRefusal(this.#notes.get('stop_details')) }),
      },
    ]
  }

  #toParts(): readonly ReplyPart[] {
    const findUse = (id: string): JsonObject | undefined =>
      this.#blocks.find(({ kind, fields }) => kind === 'provider' && fields['id'] === id)?.fields
    const blocks = this.#blocks.map((block) => toPart(block, findUse)).filter((part) => part !== undefined)
    const parts = this.#container === undefined ? blocks : withContainer(blocks, this.#container)
    return [...this.#notes].reduce(
      (all, [kind, note]) => withProviderState(all, kind, { block: {}, note }),
      parts,
    )
  }

  /** Reports a malformed call: it is complete, since something came after it, or the reply ended normally. */
  #releaseUnread(): ModelSignal[] {
    const block = this.#unread
    this.#unread = undefined
    return block?.call ? [{ type: 'model_tool_request', part: block.part, call: block.call }] : []
  }
}

/** The vendor asks to leave a refused turn out of later requests, and to ask another model. */
function readRefusal(details: JsonObject | undefined): ModelRefusal {
  const reasons = [getText(details, 'category'), getText(details, 'explanation')].filter(
    (words) => words !== undefined,
  )
  return {
    ...(reasons.length > 0 && { reason: formatFailureText(reasons.join(': ')) }),
    leaveOut: true,
    askAnother: true,
  }
}

function createSplicedError(what: string): ProviderError {
  return createProtocolError(
    `Two replies are spliced together in this stream: ${what}. A gateway tried again on its own, and which half is true cannot be told. Try the call again, and turn the gateway's retries off.`,
  )
}

function createContradiction(what: string): ProviderError {
  return createProtocolError(
    `The stream contradicts itself: ${what}. It cannot be trusted. Try the call again, and check the gateway in front of Anthropic, if there is one.`,
  )
}

function createProtocolError(message: string): ProviderError {
  return new ProviderError({ class: 'protocol', message, retryable: true })
}
