import { ConfigurationError, type Tool } from '@tallystick/core'
import { eventName, option, requireOptions, toEventReceipt } from '@tallystick/core/internal'
import { defineTool } from '../define/define-tool.ts'
import { type Deferral, settledLater } from '../define/run-tool.ts'

/** How long a run waits for an event. */
export interface WaitForOptions {
  /** Until when: a `Date`, or milliseconds since 1970 UTC. Then the call ends as timed out. Default: as long as it takes. */
  readonly until?: Date | number | undefined
  /** The time, in milliseconds since 1970 UTC. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** Which events a model may wait for, and for how long. */
export interface WaitToolOptions {
  /** Names of events, each with what it means, for the model. */
  readonly events: Readonly<Record<string, string>>
  /** The longest wait, in milliseconds. Default: as long as it takes. */
  readonly maxMs?: number | undefined
}

const { anyFunction, fields, maybe, numberFrom, recordOf, filledText, valueThat } = option

const options = fields<WaitForOptions>(
  {
    until: maybe(
      valueThat(
        'a Date, or milliseconds since 1970 UTC',
        (value) => (value instanceof Date || typeof value === 'number') && Number.isFinite(Number(value)),
      ),
    ),
    now: maybe(anyFunction),
  },
  { deadline: 'until', timeoutMs: 'until' },
)
const toolOptions = fields<WaitToolOptions>({ events: recordOf(filledText), maxMs: maybe(numberFrom(1)) })

/**
 * Returns the result of a tool that waits for an event: no process needs to be alive until `runtime.signal(name, payload)` settles the
 * call with its payload, or its time is over. An event that came before is not waited for, so begin to wait before you ask for it.
 *
 * @example
 * execute: ({ order }) => waitFor(`order-${order}-paid`, { until: new Date('2026-12-24') })
 */
export function waitFor(name: string, given: WaitForOptions = {}): Deferral {
  requireOptions('waitFor', eventName, name, 'the name of the event')
  requireOptions('waitFor', options, given)
  const { until, now = Date.now } = given
  const externalId = toEventReceipt(name)
  if (until === undefined) return settledLater({ externalId })
  return settledLater({ externalId, deadlineMs: Math.max(1, Number(until) - now()) })
}

/** A tool with which a model waits for one of these events. */
export function waitTool(given: WaitToolOptions): Tool {
  requireOptions('waitTool', toolOptions, given)
  const { events, maxMs } = given
  const names = Object.keys(events)
  if (names.length === 0) {
    throw new ConfigurationError(
      "waitTool: events has no event for a model to wait for, and providers refuse a tool without a choice. Give one, as in { 'order-17-paid': 'The order is paid.' }.",
    )
  }
  for (const name of names) requireOptions('waitTool', eventName, name, 'the name of an event')
  const list = names.map((name) => `- ${name}: ${events[name]}`).join('\n')
  return defineTool({
    name: 'wait_for',
    description: `Waits until an event comes, and returns what it says. Events that came before do not count.\n${list}`,
    input: {
      type: 'object',
      additionalProperties: false,
      required: ['event'],
      properties: { event: { enum: names } },
    },
    effect: 'read',
    repeats: 'allowed',
    execute: ({ event }) => {
      const externalId = toEventReceipt(event as string)
      return settledLater(maxMs === undefined ? { externalId } : { externalId, deadlineMs: maxMs })
    },
  })
}
