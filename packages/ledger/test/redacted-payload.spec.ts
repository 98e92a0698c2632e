import type { RuntimeEvent } from '@tallystick/core'
import { removedText } from '@tallystick/core/internal'
import type { EventOf, Json, JsonObject } from '@tallystick/core/vocabulary'
import { eventSchemas } from '@tallystick/core/schemas'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { redactEvent } from '@tallystick/core/store-kit'
import { classifyContent } from '../src/store/redact.ts'
import { envelopeOf } from './support/envelope.ts'

interface ZodDefinition {
  readonly type: string
  readonly shape?: Readonly<Record<string, unknown>>
  readonly innerType?: unknown
  readonly element?: unknown
  readonly valueType?: unknown
  readonly options?: readonly unknown[]
  readonly entries?: Readonly<Record<string, string>>
  readonly values?: readonly Json[]
}

/**
 * Values with every field that a schema has, one or more for each choice in it. Texts name their places, after a mark; words from
 * a list are one of the list.
 */
function everyValue(schema: unknown, path: string): readonly Json[] {
  const { def } = schema as { readonly def: ZodDefinition }
  const { shape, innerType, element, valueType, options, entries, values } = def
  if (innerType !== undefined) return everyValue(innerType, path)
  if (element !== undefined) return [everyValue(element, `${path}[]`)]
  if (valueType !== undefined) return [{ key: everyValue(valueType, `${path}.*`)[0] ?? null }]
  if (options) return options.flatMap((option) => everyValue(option, path))
  if (entries) return Object.values(entries).slice(0, 1)
  if (values) return values.slice(0, 1)
  if (shape) {
    const fields = Object.entries(shape).map(
      ([name, field]) => [name, everyValue(field, `${path}.${name}`)] as const,
    )
    const count = Math.max(1, ...fields.map(([, found]) => found.length))
    return Array.from({ length: count }, (_, index) =>
      Object.fromEntries(fields.map(([name, found]) => [name, found[index] ?? found.at(-1) ?? null])),
    )
  }
  if (def.type === 'boolean') return [true]
  if (def.type === 'number') return [1]
  return [`secret ${path}`]
}

function marksIn(value: unknown): readonly string[] {
  const found = JSON.stringify(value).match(/secret [\w.[\]]+/g) ?? []
  return [...new Set(found.map((mark) => mark.slice('secret '.length)))]
}

const message =
  /(.*)\.model\n(\1\.parts\[\]\.)toolCallId\n\2providerCallId\n\2name\n(\1\.results\[\]\.)toolCallId\n\3name/g

/** The places: a model stands for its three fields, and a message for its model and for what names its calls. */
function shorten(places: readonly string[]): readonly string[] {
  return places
    .join('\n')
    .replaceAll(/(.*)\.provider\n\1\.api\n\1\.modelId/g, '$1')
    .replaceAll(message, '$1')
    .split('\n')
}

it('leaves of each event its facts, and no text of its content', () => {
  const runId = sampleRunId(1)
  const left = stampFacts(runId, Object.values(sampleFacts(runId))).map((event) => {
    const bodies = everyValue(eventSchemas[event.type], event.type) as readonly JsonObject[]
    const redacted = bodies.map((body) =>
      redactEvent({ ...body, ...envelopeOf(event) } as unknown as RuntimeEvent),
    )
    return [event.type, shorten(marksIn(redacted).map((path) => path.slice(event.type.length + 1)))]
  })
  expect(Object.fromEntries(left)).toMatchInlineSnapshot(`
    {
      "agent_handed_off": [
        "from",
        "to",
        "definition.model",
        "definition.digest",
        "definition.price.source",
        "definition.fallbacks[].model",
        "definition.fallbacks[].price.source",
        "definition.guardrails[].name",
        "definition.handoffs[].tool",
        "definition.handoffs[].to",
        "definition.tools[].name",
        "definition.summarizer.model",
        "definition.summarizer.price.source",
        "definition.policy.outputStream.transforms[]",
        "messages[]",
      ],
      "approval_added": [
        "by",
        "roles[]",
        "via",
      ],
      "approval_applied": [
        "by",
        "standing",
      ],
      "approval_decided": [
        "by",
        "roles[]",
        "via",
      ],
      "approval_requested": [
        "name",
        "expiresAt",
        "approvers[].count",
        "approvers[].roles",
      ],
      "approval_withdrawn": [
        "standing",
        "by",
      ],
      "assistant_message_finished": [
        "rawStopReason",
        "providerMessageId",
        "parts[].toolCallId",
        "parts[].providerCallId",
        "parts[].name",
      ],
      "assistant_reasoning_delta": [
        "",
      ],
      "assistant_started": [
        "providerMessageId",
        "servedModel",
      ],
      "assistant_text_delta": [
        "",
      ],
      "background_ended": [
        "name",
      ],
      "cancel_requested": [
        "by",
      ],
      "compaction_started": [
        "model",
        "additions[].option",
        "additions[].field",
      ],
      "context_compacted": [
        "price.source",
        "failure.requestId",
      ],
      "feedback_given": [
        "by",
      ],
      "guardrail_tripped": [
        "guardrail",
      ],
      "guardrails_checked": [
        "guardrails[]",
      ],
      "history_carried": [
        "",
      ],
      "history_edited": [
        "by",
        "edits[].message",
      ],
      "input_received": [
        "receipt",
        "onInput.name",
        "onInput.digest",
      ],
      "input_settled": [
        "receipt",
      ],
      "limit_raised": [
        "by",
      ],
      "limit_reached": [
        "prepared.model",
        "prepared.change.tools[]",
        "prepared.change.sourced[].name",
        "prepared.change.messages[]",
        "prepared.change.shown.pieces[].messages[]",
        "prepared.toolChoice.name",
      ],
      "model_call_started": [
        "model",
        "additions[].option",
        "additions[].field",
        "change.tools[]",
        "change.sourced[].name",
        "change.messages[]",
        "change.shown.pieces[].messages[]",
        "toolChoice.name",
      ],
      "model_stream_failed": [
        "retryAt",
        "failure.requestId",
      ],
      "output_checked": [
        "",
      ],
      "run_finished": [
        "",
      ],
      "run_resumed": [
        "inDoubt[]",
        "lacks[].name",
        "lacks[].digest",
        "definition.model",
        "definition.digest",
        "definition.price.source",
        "definition.fallbacks[].model",
        "definition.fallbacks[].price.source",
        "definition.guardrails[].name",
        "definition.handoffs[].tool",
        "definition.handoffs[].to",
        "definition.tools[].name",
        "definition.summarizer.model",
        "definition.summarizer.price.source",
        "definition.policy.outputStream.transforms[]",
      ],
      "run_started": [
        "agent",
        "sessionId",
        "parent.runId",
        "subject",
        "owner",
        "deadlineAt",
        "rules[].name",
        "rules[].digest",
        "definition.model",
        "definition.digest",
        "definition.price.source",
        "definition.fallbacks[].model",
        "definition.fallbacks[].price.source",
        "definition.guardrails[].name",
        "definition.handoffs[].tool",
        "definition.handoffs[].to",
        "definition.tools[].name",
        "definition.summarizer.model",
        "definition.summarizer.price.source",
        "definition.policy.outputStream.transforms[]",
        "standing[].toolCallId",
        "standing[].by",
        "standing[].roles[]",
        "standing[].agent",
        "standing[].name",
        "standing[].toolDigest",
        "standing[].expiresAt",
        "givenModel.model",
        "givenModel.price.source",
        "givenModel.additions[].option",
        "givenModel.additions[].field",
        "labels.workflowName",
        "labels.traceId",
        "labels.groupId",
        "toolChoice.name",
      ],
      "schedule_fired": [
        "scheduledAt",
        "startedRun",
        "nextAt",
      ],
      "schedule_set": [
        "name",
        "cron",
        "timeZone",
        "onceAt",
        "nextAt",
        "by",
      ],
      "session_edited": [
        "standing",
        "by",
        "messages[]",
      ],
      "tool_attempt_failed": [
        "name",
        "retryAt",
      ],
      "tool_deferred": [
        "receipt",
        "deadlineAt",
      ],
      "tool_input_delta": [
        "name",
      ],
      "tool_progress": [
        "spent.model",
      ],
      "tool_request_ready": [
        "providerCallId",
        "name",
      ],
      "tool_requests_collected": [
        "calls[].toolCallId",
        "calls[].name",
        "calls[].serial",
        "calls[].child",
        "calls[].handoff.to",
        "calls[].recorded",
        "calls[].approvers[].count",
        "calls[].approvers[].roles",
      ],
      "tool_result": [
        "name",
        "child.runId",
        "reused",
        "settled.by",
      ],
      "tool_results_injected": [
        "toolCallIds[]",
      ],
      "tool_started": [
        "name",
        "idempotencyKey",
        "child",
        "recorded",
      ],
      "usage_updated": [
        "price.source",
        "raw",
      ],
    }
  `)
})

/** The places of all numbers, flags and words from a list. */
function factsIn(value: Json, path: string): readonly string[] {
  if (typeof value === 'string' && value.startsWith('secret ')) return []
  if (typeof value !== 'object' || value === null) return [path]
  if (Array.isArray(value)) return value.flatMap((item: Json) => factsIn(item, `${path}[]`))
  return Object.entries(value as JsonObject).flatMap(([name, item]) => factsIn(item, `${path}.${name}`))
}

const inContent =
  /\.(messages?|parts|content|projected|shown|summary|repair|replacement|written)\b|\.policy\.(tools|models)\b/

it('takes away no number, flag or word from a list, but for those of content', () => {
  const runId = sampleRunId(1)
  const gone = stampFacts(runId, Object.values(sampleFacts(runId))).flatMap((event) =>
    (everyValue(eventSchemas[event.type], event.type) as readonly JsonObject[]).flatMap((body) => {
      const redacted = redactEvent({ ...body, ...envelopeOf(event) } as unknown as RuntimeEvent)
      const left = new Set(factsIn(redacted as unknown as Json, event.type))
      return factsIn(body, event.type).filter((path) => !left.has(path))
    }),
  )
  const facts = gone.filter((path) => !inContent.test(path))
  const places = facts.map((path) => path.replace(/^.*\bdefinition\./, 'definition.'))
  expect([...new Set(places)]).toMatchInlineSnapshot(`
    [
      "run_started.givenLimits.maxTurns",
      "run_started.givenLimits.maxToolCalls",
      "run_started.givenLimits.maxToolCallsPerTurn",
      "run_started.givenLimits.maxTotalTokens",
      "run_started.givenLimits.maxTotalInputTokens",
      "run_started.givenLimits.maxTotalOutputTokens",
      "run_started.givenLimits.maxCostUsd",
      "run_started.givenLimits.maxDurationMs",
      "run_started.givenLimits.maxRepeats",
      "run_started.givenLimits.maxCallsByTool.key",
      "run_started.givenLimits.maxConcurrency",
      "run_started.givenLimits.graceMs",
      "run_started.givenLimits.maxApprovalMs",
      "run_started.givenLimits.onLimit",
      "definition.output.wrapped",
    ]
  `)
})

it('leaves events whole that retention counts as facts', () => {
  const runId = sampleRunId(1)
  for (const event of stampFacts(runId, Object.values(sampleFacts(runId)))) {
    if (classifyContent(event.type) !== 'facts') continue
    for (const body of everyValue(eventSchemas[event.type], event.type)) {
      const whole = { ...(body as object), ...envelopeOf(event) } as unknown as RuntimeEvent
      expect(redactEvent(whole)).toEqual(body)
    }
  }
})

it('keeps of the settings of models what is a number', () => {
  const runId = sampleRunId(1)
  const [started] = stampFacts(runId, [sampleFacts(runId).run_started])
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
  const [called] = stampFacts(runId, [sampleFacts(runId).model_call_started])
  const call = called as Extract<RuntimeEvent, { readonly type: 'model_call_started' }>
  const leftOfCall = redactEvent({ ...call, change: { ...call.change, modelSettings } })
  expect(JSON.stringify(leftOfCall)).not.toContain('secret')
  expect(leftOfCall).toMatchObject({ change: { modelSettings: kept } })
})

it('keeps nothing of the stack of a check that threw', () => {
  const runId = sampleRunId(1)
  const [event] = stampFacts(runId, [sampleFacts(runId).tool_requests_collected])
  const collected = event as Extract<RuntimeEvent, { readonly type: 'tool_requests_collected' }>
  const refusal = { outcome: 'denied' as const, text: 'secret', error: 'secret' }
  const left = redactEvent({ ...collected, calls: collected.calls.map((call) => ({ ...call, refusal })) })
  expect(left).toMatchObject({ calls: [{ refusal: { outcome: 'denied' } }] })
  expect(JSON.stringify(left)).not.toContain('secret')
})

it('leaves every field of an event in its place, but for what is content alone', () => {
  const runId = sampleRunId(1)
  const gone = stampFacts(runId, Object.values(sampleFacts(runId))).flatMap((event) => {
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
  const fields = stampFacts(runId, Object.values(sampleFacts(runId))).flatMap((event) =>
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
        "background_ended.error",
        "limit_reached.prepared",
        "limit_raised.reason",
      ],
      "left": [
        "run_started.toolChoice",
        "run_started.parallelToolCalls",
        "run_started.recording",
        "run_started.deadlineAt",
        "run_started.owner",
        "run_started.rules",
        "run_started.tracing",
        "run_started.traceContent",
        "run_started.subject",
        "run_started.withContext",
        "schedule_set.onceAt",
        "schedule_set.everyMs",
        "schedule_set.paused",
        "history_carried.uncheckedFrom",
        "session_edited.count",
        "session_edited.standing",
        "run_resumed.lacks",
        "input_received.onInput",
        "assistant_text_delta.replaces",
        "assistant_reasoning_delta.replaces",
        "usage_updated.contextTokens",
        "usage_updated.estimated",
        "usage_updated.refused",
        "approval_added.elsewhere",
        "approval_decided.elsewhere",
        "tool_started.recorded",
        "tool_progress.spent",
        "tool_result.background",
      ],
    }
  `)
})

it('leaves of an input that was repaired how often, and not what', () => {
  const event = stampFacts(sampleRunId(1), Object.values(sampleFacts(sampleRunId(1)))).find(
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
    const [event] = stampFacts(runId, [sampleFacts(runId)[type]]) as readonly [RuntimeEvent]
    const advice = { leaveOut: true, askAnother: true }
    const refused: object = { ...event, refusal: { ...advice, reason: 'secret' } }
    expect(redactEvent(refused as RuntimeEvent)).toMatchObject({
      refusal: { ...advice, reason: removedText },
    })
    const accepted: object = { ...event, refusal: undefined }
    expect(redactEvent(accepted as RuntimeEvent)).not.toHaveProperty('refusal')
  },
)
