import { ProviderError } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject, ModelRefusal, ModelSignal, ReplyPart } from '@tallystick/core/vocabulary'
import { failureText } from '../shared/failure.ts'
import { itemsOf, objectAt, omitFields, textAt } from '../shared/json.ts'
import { StatefulReader, type ReplyReader } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import type { WireBlock, WireEvent, WireMessage } from './client.ts'
import { failureInStream } from './failure.ts'
import {
  type Block,
  closeBlock,
  cutsReply,
  extendBlock,
  mergeUsage,
  openBlock,
  promptTokens,
  showText,
  toPart,
  toStopReason,
  usageSignal,
  withContainer,
  withProviderState,
} from './reply.ts'

/** The state of one reply between two events. */
export interface Reply {
  readonly names: ToolNames
  readonly blocks: Block[]
  /** The block that an event's `index` means now. */
  readonly byIndex: Map<number, Block>
  /** A closed call whose input cannot be read: the next block, or the end, tells whether it was cut off. */
  unread: Block | undefined
  started: boolean
  messageId: string | undefined
  usage: JsonObject
  /** Tokens of the first prompt, which the message's start says. */
  firstPrompt: number | undefined
  container: JsonObject | undefined
  rawStopReason: string | undefined
  /** Notes on the whole reply, by the kind of part that they become. */
  readonly notes: Map<string, JsonObject>
  /** Set by the terminal event. Whatever follows it is ignored. */
  finished: boolean
}

/** Begins a reply. `names` are those of its request. */
export function startReply(names: ToolNames, notes: Reply['notes'] = new Map()): Reply {
  return {
    names,
    blocks: [],
    byIndex: new Map(),
    unread: undefined,
    started: false,
    messageId: undefined,
    usage: {},
    firstPrompt: undefined,
    container: undefined,
    rawStopReason: undefined,
    notes: new Map(notes),
    finished: false,
  }
}

/** Returns a reader of one reply, which only the terminal event ends. */
export function replyReader(names: ToolNames, notes?: Reply['notes']): ReplyReader {
  return new StatefulReader(startReply(names, notes), readEvent)
}

/**
 * PROVIDER MAPPING: turns one event into signals, and keeps state in `reply`. Ignores unknown kinds of events. Throws a
 * `ProviderError` if two streams are spliced together, or if the stream contradicts itself or reports a failure.
 */
export function readEvent(reply: Reply, event: WireEvent): readonly ModelSignal[] {
  if (reply.finished || !isJsonObject(event)) return []
  switch (event.type) {
    case 'content_block_delta':
      return continueBlock(reply, event.index ?? -1, event.delta ?? {})
    case 'message_start':
      return startMessage(reply, event.message ?? {})
    case 'content_block_start':
      return startBlock(reply, event.index ?? -1, event.content_block)
    case 'content_block_stop':
      return stopBlock(reply, reply.byIndex.get(event.index ?? -1))
    case 'message_delta':
      noteEdits(reply, event.context_management)
      noteTransformations(reply, event.input_transformations)
      return updateMessage(reply, event.delta ?? {}, event.usage)
    case 'message_stop':
      return finish(reply)
    case 'error':
      throw failureInStream(event.error ?? {})
    default:
      return []
  }
}

function startMessage(reply: Reply, message: WireMessage): readonly ModelSignal[] {
  if (reply.started) {
    if (message.id === reply.messageId) return []
    throw spliced('a second message began before the first had ended')
  }
  reply.started = true
  noteTransformations(reply, message.input_transformations)
  reply.messageId = textAt(message, 'id')
  reply.rawStopReason = textAt(message, 'stop_reason')
  reply.container = objectAt(message, 'container')
  const servedModel = textAt(message, 'model')
  const warnings = droppedThinking(message.input_transformations)
  const signals: ModelSignal[] = [
    {
      type: 'model_started',
      ...(reply.messageId !== undefined && { providerMessageId: reply.messageId }),
      ...(servedModel !== undefined && { servedModel }),
      ...(warnings.length > 0 && { warnings }),
    },
  ]
  const whole = Array.isArray(message.content) ? (message.content as readonly WireBlock[]) : []
  whole.forEach((block, index) => {
    signals.push(...startBlock(reply, index, block), ...stopBlock(reply, reply.byIndex.get(index)))
  })
  reply.firstPrompt = isJsonObject(message.usage) ? promptTokens(message.usage) : undefined
  return [...signals, ...updateUsage(reply, message.usage)]
}

function startBlock(reply: Reply, index: number, start: WireBlock | undefined): ModelSignal[] {
  if (!isJsonObject(start) || typeof start.type !== 'string')
    throw contradiction(`block ${index} began without a type`)
  if (reply.byIndex.get(index)?.closed === false) throw spliced(`block ${index} began twice`)
  const before = releaseUnread(reply)
  const block = openBlock(reply.blocks.length, start)
  reply.blocks.push(block)
  reply.byIndex.set(index, block)
  return [...before, ...(block.text === '' ? [] : showText(block, block.text))]
}

function continueBlock(reply: Reply, index: number, delta: JsonObject): ModelSignal[] {
  const block = reply.byIndex.get(index)
  if (block === undefined || block.closed) throw contradiction(`block ${index} continued without being open`)
  return extendBlock(block, delta, reply.names)
}

function stopBlock(reply: Reply, block: Block | undefined): ModelSignal[] {
  if (block === undefined || block.closed) return []
  closeBlock(block, reply.names, reply.container)
  if (block.call === undefined) return []
  if (block.call.malformed === undefined)
    return [{ type: 'model_tool_request', part: block.part, call: block.call }]
  reply.unread = block
  return []
}

function updateMessage(
  reply: Reply,
  delta: JsonObject,
  usage: JsonObject | null | undefined,
): readonly ModelSignal[] {
  reply.rawStopReason = textAt(delta, 'stop_reason') ?? reply.rawStopReason
  reply.container = objectAt(delta, 'container') ?? reply.container
  const details = objectAt(delta, 'stop_details')
  // A token in it is worth money, and is not kept.
  if (details) reply.notes.set('stop_details', omitFields(details, ['fallback_credit_token']))
  return updateUsage(reply, usage)
}

/** Records what the vendor left out of the history before the model saw it. */
function noteEdits(reply: Reply, management: JsonObject | null | undefined): void {
  const edits = management?.['applied_edits']
  if (Array.isArray(edits) && edits.length > 0) reply.notes.set('context_management', management!)
}

/** A history has one entry for each block of thinking; these are enough to tell what happened. */
const maxTransformations = 20

/** Records which thinking of the history the vendor left out, or let through although it belongs to another beginning. */
function noteTransformations(reply: Reply, transformations: Json | undefined): void {
  if (!Array.isArray(transformations) || transformations.length === 0) return
  reply.notes.set('input_transformations', {
    count: transformations.length,
    first: transformations.slice(0, maxTransformations),
  })
}

/** Recorded with the beginning of the reply, since a reply that breaks off has no parts that could say it. */
function droppedThinking(transformations: Json | undefined): readonly string[] {
  const dropped = itemsOf(transformations).filter((one) => textAt(one, 'type') === 'thinking_dropped')
  if (dropped.length === 0) return []
  const blocks = dropped.length === 1 ? 'a block' : `${dropped.length} blocks`
  return [`Anthropic left ${blocks} of earlier thinking out of what the model read.`]
}

function updateUsage(reply: Reply, usage: JsonObject | null | undefined): readonly ModelSignal[] {
  if (!isJsonObject(usage)) return []
  reply.usage = mergeUsage(reply.usage, usage)
  // The model was asked once, and again after each batch of results of the vendor's own tools.
  const isResult = (block: Block | undefined): boolean =>
    block?.kind === 'provider' && (textAt(block.fields, 'type') ?? '').endsWith('_tool_result')
  const { blocks, firstPrompt } = reply
  const again = blocks.filter((block, place) => !isResult(block) && isResult(blocks[place - 1]))
  return [usageSignal(reply.usage, { count: 1 + again.length, firstPrompt })]
}

function finish(reply: Reply): readonly ModelSignal[] {
  const { rawStopReason, messageId } = reply
  if (rawStopReason === undefined) {
    throw new ProviderError({
      class: 'truncated',
      message:
        'Anthropic ended its reply without a stop reason, so whether it is whole cannot be told. Try the call again.',
      retryable: true,
    })
  }
  const stopReason = toStopReason(rawStopReason)
  if (stopReason === 'tool_use' && !reply.blocks.some(({ kind }) => kind === 'call')) {
    throw untrustworthy(
      'Anthropic ended its reply with the stop reason tool_use, but the reply has no call of a tool. Try the call again, and check the gateway in front of Anthropic, if there is one.',
    )
  }
  // A reply that was cut inside a call drops it.
  if (cutsReply(stopReason) && reply.unread) delete reply.unread.call
  const late = releaseUnread(reply)
  reply.finished = true
  return [
    ...late,
    {
      type: 'model_finished',
      stopReason,
      rawStopReason,
      parts: toParts(reply),
      ...(messageId !== undefined && { providerMessageId: messageId }),
      ...(stopReason === 'refused' && { refusal: readRefusal(reply.notes.get('stop_details')) }),
    },
  ]
}

/** The vendor asks to leave a refused turn out of later requests, and to ask another model. */
function readRefusal(details: JsonObject | undefined): ModelRefusal {
  const reasons = [textAt(details, 'category'), textAt(details, 'explanation')].filter(
    (words) => words !== undefined,
  )
  return {
    ...(reasons.length > 0 && { reason: failureText(reasons.join(': ')) }),
    leaveOut: true,
    askAnother: true,
  }
}

function toParts(reply: Reply): readonly ReplyPart[] {
  const useOf = (id: string): JsonObject | undefined =>
    reply.blocks.find(({ kind, fields }) => kind === 'provider' && fields['id'] === id)?.fields
  const blocks = reply.blocks.map((block) => toPart(block, useOf)).filter((part) => part !== undefined)
  const parts = reply.container === undefined ? blocks : withContainer(blocks, reply.container)
  return [...reply.notes].reduce(
    (all, [kind, note]) => withProviderState(all, kind, { block: {}, note }),
    parts,
  )
}

/** Reports a malformed call: it is complete, since something came after it, or the reply ended normally. */
function releaseUnread(reply: Reply): ModelSignal[] {
  const block = reply.unread
  reply.unread = undefined
  return block?.call ? [{ type: 'model_tool_request', part: block.part, call: block.call }] : []
}

function spliced(what: string): ProviderError {
  return untrustworthy(
    `Two replies are spliced together in this stream: ${what}. A gateway tried again on its own, and which half is true cannot be told. Try the call again, and turn the gateway's retries off.`,
  )
}

function contradiction(what: string): ProviderError {
  return untrustworthy(
    `The stream contradicts itself: ${what}. It cannot be trusted. Try the call again, and check the gateway in front of Anthropic, if there is one.`,
  )
}

function untrustworthy(message: string): ProviderError {
  return new ProviderError({ class: 'protocol', message, retryable: true })
}
