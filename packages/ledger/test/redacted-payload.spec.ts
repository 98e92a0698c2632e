import type { RuntimeEvent } from '@tallystick/core'
import { removedText } from '@tallystick/core/internal'
import type { EventOf, Json, JsonObject } from '@tallystick/core/vocabulary'
import { eventSchemas } from '@tallystick/core/schemas'
import { everyFact, sampleRunId, stamped } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { redactEvent } from '../src/format/redacted-event.ts'
import { envelopeOf } from './support/envelope.ts'

/** A value with a mark in every text of it, which names its place. */
function marked(value: Json, path: string): Json {
  if (typeof value === 'string') return `secret ${path}`
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => marked(item, `${path}[]`))
  const fields = Object.entries(value as JsonObject)
  return Object.fromEntries(fields.map(([key, item]) => [key, marked(item, `${path}.${key}`)]))
}

function marksIn(value: unknown): readonly string[] {
  const found = JSON.stringify(value).match(/secret [\w.[\]]+/g) ?? []
  return [...new Set(found.map((mark) => mark.slice('secret '.length)))]
}

/** The kind of a part decides what becomes of it, and has to stay what it is. */
function withKinds(original: Json, value: Json): Json {
  if (typeof original !== 'object' || original === null) return value
  if (Array.isArray(original))
    return original.map((item: Json, index) => withKinds(item, (value as Json[])[index] ?? null))
  const fields = Object.entries(original as JsonObject).map(([key, item]) => {
    const own = (value as JsonObject)[key] ?? null
    return [key, key === 'type' || key === 'role' ? item : withKinds(item, own)]
  })
  return Object.fromEntries(fields)
}

it('leaves of each event its facts, and no text of its content', () => {
  const runId = sampleRunId(1)
  const events = stamped(runId, Object.values(everyFact(runId)))
  const left = events.map((event) => {
    const body = event as unknown as Json
    const secret = {
      ...(withKinds(body, marked(body, event.type)) as object),
      ...envelopeOf(event),
    } as RuntimeEvent
    return [event.type, marksIn(redactEvent(secret)).map((path) => path.slice(event.type.length + 1))]
  })
  expect(Object.fromEntries(left)).toMatchInlineSnapshot(`
    {
      "agent_handed_off": [
        "from",
        "to",
        "definition.model.provider",
        "definition.model.api",
        "definition.model.modelId",
        "definition.digest",
        "definition.tools[].name",
        "definition.price.source",
        "definition.fallbacks[].model.provider",
        "definition.fallbacks[].model.api",
        "definition.fallbacks[].model.modelId",
        "definition.fallbacks[].price.source",
        "definition.guardrails[].name",
        "definition.guardrails[].on",
        "definition.handoffs[].tool",
        "definition.handoffs[].to",
        "definition.summarizer.model.provider",
        "definition.summarizer.model.api",
        "definition.summarizer.model.modelId",
        "definition.summarizer.price.source",
      ],
      "approval_decided": [
        "by",
        "via",
      ],
      "approval_requested": [
        "name",
      ],
      "assistant_message_finished": [
        "stopReason",
        "rawStopReason",
        "parts[].toolCallId",
        "parts[].providerCallId",
        "parts[].name",
        "providerMessageId",
      ],
      "assistant_reasoning_delta": [],
      "assistant_started": [
        "providerMessageId",
        "servedModel",
      ],
      "assistant_text_delta": [],
      "cancel_requested": [
        "by",
      ],
      "compaction_started": [
        "model.provider",
        "model.api",
        "model.modelId",
        "additions[].option",
        "additions[].field",
      ],
      "context_compacted": [
        "price.source",
        "failure.class",
      ],
      "guardrail_tripped": [
        "guardrail",
        "on",
        "action",
      ],
      "guardrails_checked": [
        "on",
        "guardrails[]",
      ],
      "history_carried": [],
      "history_edited": [
        "by",
      ],
      "input_received": [
        "delivery",
        "receipt",
      ],
      "input_settled": [
        "receipt",
      ],
      "limit_raised": [
        "limit",
        "by",
      ],
      "limit_reached": [
        "limit",
        "policy",
      ],
      "model_call_started": [
        "model.provider",
        "model.api",
        "model.modelId",
        "additions[].option",
        "additions[].field",
        "change.tools[]",
      ],
      "model_stream_failed": [
        "failure.class",
        "failure.requestId",
      ],
      "output_checked": [],
      "run_finished": [
        "reason",
      ],
      "run_resumed": [
        "why",
        "inDoubt[]",
        "definition.model.provider",
        "definition.model.api",
        "definition.model.modelId",
        "definition.digest",
        "definition.tools[].name",
        "definition.price.source",
        "definition.fallbacks[].model.provider",
        "definition.fallbacks[].model.api",
        "definition.fallbacks[].model.modelId",
        "definition.fallbacks[].price.source",
        "definition.guardrails[].name",
        "definition.guardrails[].on",
        "definition.handoffs[].tool",
        "definition.handoffs[].to",
        "definition.summarizer.model.provider",
        "definition.summarizer.model.api",
        "definition.summarizer.model.modelId",
        "definition.summarizer.price.source",
      ],
      "run_started": [
        "agent",
        "limits.onLimit",
        "sessionId",
        "parent.runId",
        "parent.relation",
        "definition.model.provider",
        "definition.model.api",
        "definition.model.modelId",
        "definition.digest",
        "definition.tools[].name",
        "definition.price.source",
      ],
      "tool_attempt_failed": [
        "name",
        "outcome",
      ],
      "tool_deferred": [
        "receipt",
      ],
      "tool_input_delta": [
        "name",
      ],
      "tool_progress": [],
      "tool_request_ready": [
        "providerCallId",
        "name",
      ],
      "tool_requests_collected": [
        "calls[].toolCallId",
        "calls[].name",
        "calls[].plan",
        "calls[].effect",
        "calls[].recovery",
        "calls[].child",
        "calls[].handoff.to",
        "calls[].refusal.outcome",
      ],
      "tool_result": [
        "name",
        "outcome",
        "child.runId",
        "reused",
      ],
      "tool_results_injected": [
        "toolCallIds[]",
      ],
      "tool_started": [
        "name",
        "idempotencyKey",
        "effect",
        "child",
      ],
      "usage_updated": [
        "price.source",
      ],
    }
  `)
})

it('keeps of the settings of models what is a number', () => {
  const runId = sampleRunId(1)
  const [started] = stamped(runId, [everyFact(runId).run_started])
  const modelSettings = {
    ...{ temperature: 0.2, topP: 0.9, seed: 7 },
    ...{ stop: ['secret'], providerOptions: { acme: { user: 'secret' } } },
  }
  const whole = started as Extract<RuntimeEvent, { readonly type: 'run_started' }>
  const definition = { ...whole.definition, modelSettings }
  const left = redactEvent({ ...whole, definition, modelSettings })
  expect(JSON.stringify(left)).not.toContain('secret')
  const kept = { temperature: 0.2, topP: 0.9, seed: 7 }
  expect(left).toMatchObject({ modelSettings: kept, definition: { modelSettings: kept } })

  // A turn may have settings of its own.
  const [called] = stamped(runId, [everyFact(runId).model_call_started])
  const call = called as Extract<RuntimeEvent, { readonly type: 'model_call_started' }>
  const leftOfCall = redactEvent({ ...call, change: { ...call.change, modelSettings } })
  expect(JSON.stringify(leftOfCall)).not.toContain('secret')
  expect(leftOfCall).toMatchObject({ change: { modelSettings: kept } })
})

it('keeps nothing of the stack of a check that threw', () => {
  const runId = sampleRunId(1)
  const [event] = stamped(runId, [everyFact(runId).tool_requests_collected])
  const collected = event as Extract<RuntimeEvent, { readonly type: 'tool_requests_collected' }>
  const refusal = { outcome: 'denied' as const, text: 'secret', error: 'secret' }
  const left = redactEvent({ ...collected, calls: collected.calls.map((call) => ({ ...call, refusal })) })
  expect(left).toMatchObject({ calls: [{ refusal: { outcome: 'denied' } }] })
  expect(JSON.stringify(left)).not.toContain('secret')
})

it('leaves every field of an event in its place, but for what is content alone', () => {
  const runId = sampleRunId(1)
  const gone = stamped(runId, Object.values(everyFact(runId))).flatMap((event) => {
    const inEnvelope = new Set(Object.keys(envelopeOf(event)))
    const left = redactEvent(event) as JsonObject
    const fields = Object.keys(event).filter((field) => !inEnvelope.has(field) && !(field in left))
    return fields.length > 0 ? [[event.type, fields] as const] : []
  })
  expect(Object.fromEntries(gone)).toMatchInlineSnapshot(`
    {
      "tool_request_ready": [
        "opaque",
        "malformed",
      ],
    }
  `)
})

it('leaves those fields that an event seldom has, but for what an application said in them', () => {
  const runId = sampleRunId(1)
  const fields = stamped(runId, Object.values(everyFact(runId))).flatMap((event) =>
    Object.keys((eventSchemas[event.type] as unknown as { readonly shape: object }).shape)
      .filter((field) => !(field in event))
      .map((field) => {
        const left = Object.entries(redactEvent({ ...event, [field]: 7 }))
        const isLeft = left.some(([name, value]) => name === field && value === 7)
        return { name: `${event.type}.${field}`, isLeft }
      }),
  )
  const namesOf = (isLeft: boolean): readonly string[] =>
    fields.filter((field) => field.isLeft === isLeft).map(({ name }) => name)
  expect({ left: namesOf(true), changed: namesOf(false) }).toMatchInlineSnapshot(`
    {
      "changed": [
        "run_started.givenModel",
        "run_started.modelSettings",
        "run_started.providerState",
        "run_started.labels",
        "run_started.idempotencyKey",
        "run_started.givenLimits",
        "history_carried.missing",
        "assistant_text_delta.written",
        "assistant_reasoning_delta.written",
        "assistant_message_finished.written",
        "assistant_message_finished.providerState",
        "assistant_message_finished.refusal",
        "tool_attempt_failed.error",
        "tool_result.error",
        "tool_result.settled",
        "limit_raised.reason",
      ],
      "left": [
        "run_started.toolChoice",
        "run_started.parallelToolCalls",
        "run_started.recording",
        "run_started.deadlineAt",
        "run_started.owner",
        "run_started.subject",
        "run_started.withContext",
        "history_carried.uncheckedFrom",
        "assistant_text_delta.replaces",
        "assistant_reasoning_delta.replaces",
        "usage_updated.contextTokens",
        "usage_updated.estimated",
        "usage_updated.refused",
        "approval_decided.elsewhere",
        "tool_started.recorded",
        "tool_progress.spent",
      ],
    }
  `)
})

it('leaves of an input that was repaired how often, and not what', () => {
  const event = stamped(sampleRunId(1), Object.values(everyFact(sampleRunId(1)))).find(
    ({ type }) => type === 'tool_requests_collected',
  ) as EventOf<'tool_requests_collected'>
  const calls = event.calls.map((call) => ({ ...call, input: { secret: 1 }, repairs: ['secret', 'secret'] }))
  const kept = redactEvent({ ...event, calls }) as unknown as EventOf<'tool_requests_collected'>
  expect(JSON.stringify(kept)).not.toContain('secret')
  expect(kept.calls[0]).toMatchObject({ input: {}, repairs: [expect.any(String), expect.any(String)] })
})

it.each(['assistant_message_finished', 'model_stream_failed'] as const)(
  'leaves of a refusal in %s what the vendor advises, and not why',
  (type) => {
    const runId = sampleRunId(1)
    const [event] = stamped(runId, [everyFact(runId)[type]]) as readonly [RuntimeEvent]
    const advice = { leaveOut: true, askAnother: true }
    const refused: object = { ...event, refusal: { ...advice, reason: 'secret' } }
    expect(redactEvent(refused as RuntimeEvent)).toMatchObject({
      refusal: { ...advice, reason: removedText },
    })
    const accepted: object = { ...event, refusal: undefined }
    expect(redactEvent(accepted as RuntimeEvent)).not.toHaveProperty('refusal')
  },
)
