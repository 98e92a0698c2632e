import type { Wake } from '../../src/engine.ts'

/** What happened in a workflow, in the order in which a server would have recorded it. */
export type HistoryStep =
  | { readonly drive: Wake; readonly during?: readonly Wake[]; readonly isLong?: boolean }
  | { readonly timerMs: number; readonly until?: Wake }
  | { readonly continuesWith: Wake }
  | 'ends'

const encode = (value: unknown): object => ({
  payloads: [
    {
      metadata: { encoding: Buffer.from('json/plain').toString('base64') },
      data: Buffer.from(JSON.stringify(value)).toString('base64'),
    },
  ],
})

/**
 * A history of the workflow as a server would write it, in JSON, written by hand: no server recorded it. A replay fails if
 * the workflow asks for other activities or timers than it says; what these are given, it does not compare. `now` is when it began, in milliseconds since 1970 UTC.
 */
export function writeHistory(now: number, first: Wake, steps: readonly HistoryStep[]): object {
  const events: object[] = []
  let time = now
  let timers = 0
  let activities = 0
  let lastTask = 0
  const add = (eventType: string, attributes: object): number => {
    const name = `${eventType[0]?.toLowerCase()}${eventType.slice(1).replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())}`
    const eventId = String(events.length + 1)
    const label = eventType.replace(/(?<!^)([A-Z])/g, '_$1').toUpperCase()
    events.push({
      eventId,
      eventTime: new Date(time).toISOString(),
      eventType: `EVENT_TYPE_${label}`,
      [`${name}EventAttributes`]: attributes,
    })
    return events.length
  }
  const taskQueue = { name: 'tallystick' }
  const task = (suggestContinueAsNew = false): void => {
    const scheduled = add('WorkflowTaskScheduled', { taskQueue, startToCloseTimeout: '10s', attempt: 1 })
    const started = add('WorkflowTaskStarted', {
      scheduledEventId: String(scheduled),
      suggestContinueAsNew,
    })
    lastTask = add('WorkflowTaskCompleted', {
      scheduledEventId: String(scheduled),
      startedEventId: String(started),
      sdkMetadata: { langUsedFlags: [2, 3, 4] },
    })
  }
  const signal = (wake: Wake): void => {
    add('WorkflowExecutionSignaled', { signalName: 'wake', input: encode(wake) })
  }
  add('WorkflowExecutionStarted', {
    workflowType: { name: 'tallystickRun' },
    taskQueue,
    workflowTaskTimeout: '10s',
    originalExecutionRunId: '5f1c2a52-0d6b-4c3e-9f4e-6f1d0f0f0f0f',
    firstExecutionRunId: '5f1c2a52-0d6b-4c3e-9f4e-6f1d0f0f0f0f',
    attempt: 1,
  })
  signal(first)
  task()
  for (const step of steps) {
    if (step === 'ends') add('WorkflowExecutionCompleted', { workflowTaskCompletedEventId: String(lastTask) })
    else if ('continuesWith' in step) {
      add('WorkflowExecutionContinuedAsNew', {
        workflowType: { name: 'tallystickRun' },
        taskQueue,
        input: encode(step.continuesWith),
        workflowTaskCompletedEventId: String(lastTask),
      })
    } else if ('drive' in step) {
      const scheduled = add('ActivityTaskScheduled', {
        activityId: String(++activities),
        activityType: { name: 'driveRun' },
        taskQueue,
        input: encode(step.drive),
        heartbeatTimeout: '30s',
        startToCloseTimeout: '86400s',
        workflowTaskCompletedEventId: String(lastTask),
      })
      for (const wake of step.during ?? []) {
        signal(wake)
        task()
      }
      const started = add('ActivityTaskStarted', { scheduledEventId: String(scheduled), attempt: 1 })
      time += 1_000
      add('ActivityTaskCompleted', {
        scheduledEventId: String(scheduled),
        startedEventId: String(started),
        result: { payloads: [{ metadata: { encoding: Buffer.from('binary/null').toString('base64') } }] },
      })
      task(step.isLong)
    } else {
      const timerId = String(++timers)
      const started = add('TimerStarted', {
        timerId,
        startToFireTimeout: `${step.timerMs / 1_000}s`,
        workflowTaskCompletedEventId: String(lastTask),
      })
      if (step.until) {
        signal(step.until)
        task()
        add('TimerCanceled', {
          timerId,
          startedEventId: String(started),
          workflowTaskCompletedEventId: String(lastTask),
        })
      } else {
        time += step.timerMs
        add('TimerFired', { timerId, startedEventId: String(started) })
        task()
      }
    }
  }
  return { events }
}
