import { type Agent, ConfigurationError, type RunState, type RuntimeEvent } from '@tallystick/core'
import {
  describeChangedInput,
  withDigest,
  readShownMessages,
  computeRequestDigest,
  toShownMessages,
  digestSummaryRequest,
  type TurnChange,
} from '@tallystick/core/internal'
import { audit, findCall } from '@tallystick/core/machine'
import {
  type AgentDefinition,
  toCanonicalJson,
  computeDigest,
  type EventOf,
} from '@tallystick/core/vocabulary'
import type { SecretMask } from './secrets.ts'

/** A definition without secrets, under a digest of its own. Without any secret it stays the same. */
function redactDefinition(definition: AgentDefinition, mask: SecretMask): AgentDefinition {
  const redacted = mask.value(definition)
  return toCanonicalJson(redacted) === toCanonicalJson(definition) ? definition : withDigest(redacted)
}

/** An agent whose words are without secrets: its definition, and what its rules say. What it decides stays its own. */
export function redactAgent(agent: Agent<unknown>, mask: SecretMask): Agent<unknown> {
  const { prepareTurn, compaction, handOff, ...rules } = agent.rules
  const { summarize } = compaction ?? {}
  return {
    ...agent,
    definition: redactDefinition(agent.definition, mask),
    rules: {
      ...rules,
      ...(prepareTurn && {
        prepareTurn: (turn, context): TurnChange | undefined | Promise<TurnChange | undefined> => {
          const answer = prepareTurn(turn, context)
          return answer instanceof Promise ? answer.then((change) => mask.value(change)) : mask.value(answer)
        },
      }),
      ...(compaction && {
        compaction: {
          ...compaction,
          ...(summarize && { summarize: (messages): string => mask.text(summarize(messages)) }),
        },
      }),
      ...(handOff && {
        handOff: (tool, messages) => {
          const taking = handOff(tool, messages)
          if (taking === undefined) return undefined
          return {
            definition: redactDefinition(taking.definition, mask),
            ...(taking.messages && { messages: mask.value(taking.messages) }),
          }
        },
      }),
    },
  }
}

/**
 * The events of a run without secrets. What was streamed is masked as a whole, since a secret may come in pieces; the
 * recorded digests are computed again from what is left, so that the laws hold over the result too.
 *
 * Throws what `audit` throws if the run breaks a law, and `ConfigurationError` where it does so only because a pattern
 * of the caller masks more than secrets.
 */
export function redactEvents(events: readonly RuntimeEvent[], mask: SecretMask): readonly RuntimeEvent[] {
  const streamed = redactStreams(events, mask)
  let recorded: RunState | undefined
  let redacted: RunState | undefined
  return events.map((event) => {
    recorded = audit(recorded, event)
    const masked = streamed.get(event.seq) ?? redactBody(event, mask)
    const whole = redacted ? withDigests(redacted, masked) : masked
    redacted = auditRedacted(redacted, whole, mask)
    return whole
  })
}

function auditRedacted(state: RunState | undefined, event: RuntimeEvent, mask: SecretMask): RunState {
  try {
    return audit(state, event)
  } catch (cause) {
    if (!mask.hasOwnPatterns) throw cause
    throw new ConfigurationError(
      `exportRegression: a pattern in secrets masks more than secrets, so event ${event.seq}, ${event.type}, no longer ` +
        'fits its run. Write a pattern that matches only secrets, and not names such as those of tools.',
      { cause },
    )
  }
}

type Delta =
  | EventOf<'assistant_text_delta'>
  | EventOf<'assistant_reasoning_delta'>
  | EventOf<'tool_input_delta'>

function isDelta(event: RuntimeEvent): event is Delta {
  return (
    event.type === 'assistant_text_delta' ||
    event.type === 'assistant_reasoning_delta' ||
    event.type === 'tool_input_delta'
  )
}

/** The deltas of a run by their seq: each part is put together, masked, and taken apart at the same places. */
function redactStreams(events: readonly RuntimeEvent[], mask: SecretMask): ReadonlyMap<number, RuntimeEvent> {
  const parts = Map.groupBy(
    events.filter(isDelta),
    ({ type, turn, attempt, part }) => `${type} ${turn} ${attempt} ${part}`,
  )
  const redacted = new Map<number, RuntimeEvent>()
  for (const deltas of parts.values()) {
    const shown = maskPieces(
      deltas.map(({ text }) => text),
      mask,
    )
    const written = maskPieces(
      deltas.map((delta) => ('written' in delta ? delta.written : undefined) ?? delta.text),
      mask,
    )
    deltas.forEach((delta, place) => {
      const text = shown[place] as string
      const differs = 'written' in delta
      redacted.set(delta.seq, { ...delta, text, ...(differs && { written: written[place] as string }) })
    })
  }
  return redacted
}

/** The pieces of one text, masked together and taken apart at the same places. */
function maskPieces(texts: readonly string[], mask: SecretMask): readonly string[] {
  const whole = mask.text(texts.join(''))
  let from = 0
  return texts.map(({ length }) => {
    from += length
    return whole.slice(from - length, from)
  })
}

/** An event without secrets. Its envelope has none, and neither have ids of runs: the runtime made them. */
function redactBody(event: RuntimeEvent, mask: SecretMask): RuntimeEvent {
  const { runId, seq, epoch, turn, type, v, at } = event
  const envelope = { runId, seq, epoch, turn, type, v, at }
  const masked = withRunIds({ ...mask.value(event), ...envelope } as RuntimeEvent, event)
  if (!('definition' in event)) return masked
  return { ...masked, definition: redactDefinition(event.definition, mask) } as RuntimeEvent
}

/** A masked event with the ids of runs that it was recorded with. */
function withRunIds(masked: RuntimeEvent, recorded: RuntimeEvent): RuntimeEvent {
  if (masked.type === 'run_started' && recorded.type === 'run_started') {
    const { parent } = recorded
    return parent && masked.parent ? { ...masked, parent: { ...masked.parent, runId: parent.runId } } : masked
  }
  if (masked.type === 'tool_started' && recorded.type === 'tool_started') {
    const { idempotencyKey, child } = recorded
    return { ...masked, idempotencyKey, ...(child !== undefined && { child }) }
  }
  if (masked.type === 'tool_result' && recorded.type === 'tool_result') {
    const { child } = recorded
    return child && masked.child ? { ...masked, child: { ...masked.child, runId: child.runId } } : masked
  }
  return masked
}

/** The event with digests of what the model and the tools would have been given without secrets. */
function withDigests(state: RunState, event: RuntimeEvent): RuntimeEvent {
  if (event.type === 'model_call_started') {
    // A turn shows only what differs from a history without secrets.
    const { shown: recorded, ...others } = event.change ?? {}
    const shown =
      recorded && toShownMessages(state.history, readShownMessages(state.history, { shown: recorded }))
    const masked = event.change ? { ...event, change: { ...others, ...(shown && { shown }) } } : event
    return { ...masked, requestDigest: computeRequestDigest(state, masked) }
  }
  if (event.type === 'compaction_started') {
    return { ...event, requestDigest: digestSummaryRequest(state, event) }
  }
  if (event.type === 'tool_requests_collected') {
    const calls = event.calls.map((call) => {
      const input = call.input ?? findCall(state, call.toolCallId)?.input ?? {}
      return { ...call, inputDigest: computeDigest(input) }
    })
    return { ...event, calls }
  }
  if (event.type === 'tool_started') {
    const { input } = findCall(state, event.toolCallId) ?? {}
    const isKnown = input !== undefined && event.inputDigest !== undefined
    return isKnown ? { ...event, inputDigest: computeDigest(input) } : event
  }
  if (
    event.type === 'approval_requested' ||
    event.type === 'approval_added' ||
    event.type === 'approval_applied'
  ) {
    return { ...event, inputDigest: findCall(state, event.toolCallId)?.inputDigest ?? event.inputDigest }
  }
  if (event.type === 'approval_decided') {
    const { input: asked = {}, inputDigest = event.inputDigest } = findCall(state, event.toolCallId) ?? {}
    if (event.input === undefined) return { ...event, inputDigest }
    return { ...event, inputDigest, note: describeChangedInput(event.by, asked, event.input) }
  }
  return event
}
