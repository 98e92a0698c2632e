import type { ScheduleRecord } from '@tallystick/core'
import { omitUndefined, readSchedules } from '@tallystick/core/internal'
import { isVisible, toCallerKey } from '../http/principal.ts'
import type { Routes } from '../http/routes.ts'
import { respondJson } from '../http/served.ts'
import { scheduleBody } from './schema.ts'
import { requireStartable } from './start.ts'

/** Adds the routes of schedules. Each is a run, so that its events are followed, and it is removed by `cancel`, as any run. */
export function addSchedules(routes: Routes): void {
  const { served } = routes
  const { runtime, ledger, basePath, wake } = served
  routes.post(
    '/schedules',
    {
      operationId: 'setSchedule',
      summary:
        'Starts runs by time. Under a `name` the caller has one schedule: setting it anew replaces it.',
      permission: 'schedule',
      body: {
        name: 'SetSchedule',
        schema: scheduleBody,
        example: { agent: 'cashier', input: 'Pay the bills.', cron: '0 3 * * *', timeZone: 'Europe/Berlin' },
      },
      answers: { 201: 'The schedule is on record.' },
      fields: ['scheduleId', 'missed', 'paused', 'started', 'isOver'],
    },
    async ({ principal, readBody }) => {
      const { agent: name, input, name: given, ...options } = await readBody()
      const { agent, subject } = requireStartable(served, principal, { agent: name, ...options })
      const schedule: ScheduleRecord = await runtime.schedule(agent, {
        ...options,
        input,
        context: served.context,
        owner: principal.name,
        drive: wake === undefined,
        ...omitUndefined({ subject, name: toCallerKey(principal, given) }),
      })
      await wake?.(schedule.scheduleId)
      return respondJson(schedule, 201, { location: `${basePath}/runs/${schedule.scheduleId}` })
    },
  )
  routes.get(
    '/schedules',
    {
      operationId: 'listSchedules',
      summary: 'The schedules that the caller sees and that are not over.',
      answers: { 200: 'The schedules.' },
      fields: ['schedules'],
    },
    async ({ principal }) => {
      const schedules: ScheduleRecord[] = []
      for await (const schedule of readSchedules(ledger))
        if (await isVisible(ledger, principal, schedule.scheduleId)) schedules.push(schedule)
      return respondJson({ schedules })
    },
  )
}
