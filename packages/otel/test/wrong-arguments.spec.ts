// What is given in place of a ledger, events, spans or a call, where no compiler looks.
import { expect, it } from 'vitest'
import { ConfigurationError, memoryLedger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { toMeasurements, readSpans, toSpans, toOtlp, readTraceparent } from '@tallystick/otel'

const nothing = undefined as never
const path = 'runs.db' as never
const ledger = memoryLedger()
const runId = sampleRunId(1)

it.each<readonly [string, () => unknown, string]>([
  [
    'a ledger for its events',
    () => toSpans(ledger as never),
    'toSpans: the list of events is an object; expected the events of runs',
  ],
  ['a text for events', () => toSpans(path), 'toSpans: the list of events is a text'],
  ['what is not an event', () => toSpans([null as never]), 'toSpans: the list of events[0] is null'],
  ['an option of another function', () => toSpans([], { withChildren: true } as never), 'withChildren is no'],
  ['a path to read spans from', () => readSpans(path, runId).next(), 'readSpans: the ledger is a text'],
  ['no run to read spans of', () => readSpans(ledger, nothing).next(), 'readSpans: the run id is missing'],
  [
    'a choice of child runs that is none',
    () => readSpans(ledger, runId, { withChildren: 'no' as never }).next(),
    "readSpans: withChildren is a text, 'no'; expected true or false",
  ],
  ['no spans', () => toOtlp(nothing), 'toOtlp: the list of spans is missing: give a list'],
  [
    'what is not a span',
    () => toOtlp([{} as never]),
    'toOtlp: the list of spans[0] is an object; expected an ended',
  ],
  ['a name for the options', () => toOtlp([], path), 'toOtlp: what it was given is a text'],
  [
    'no span to measure',
    () => toMeasurements(nothing),
    'toMeasurements: the span is missing: give an ended span',
  ],
  [
    'a path to find a call in',
    () => readTraceparent(path, { runId, toolCallId: 'call' as never }),
    'readTraceparent: the ledger is a text',
  ],
  [
    'a run for a call',
    () => readTraceparent(ledger, { runId } as never),
    'readTraceparent: the call is an object; expected a call, as in { runId, toolCallId }',
  ],
])('refuses %s', async (_name, act, message) => {
  const refusal = (async () => await act())()
  await expect(refusal).rejects.toThrow(ConfigurationError)
  await expect(refusal).rejects.toThrow(message)
})
