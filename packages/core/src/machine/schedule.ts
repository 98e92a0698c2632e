import { Cron } from 'croner'
import type { Fact, FactOf } from '../events/event.ts'
import { isMoment, type Schedule } from '../events/event-parts.ts'
import { ConfigurationError } from '../values/errors.ts'
import { deriveRunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { formatError } from '../values/text.ts'
import type { Action } from './rules.ts'
import type { RunState, ScheduleState } from './state.ts'

/** A time that came this long ago was missed, in milliseconds: workers look, and processes start, within less. */
const LATE_MS = 60_000

/** A schedule that missed more times than this fires once for all of them, also where it would for each. */
const MAX_MISSED = 100

/**
 * Finds the first time of a schedule after another; `undefined` after the last. All times are in milliseconds since 1970 UTC;
 * `since` is when it began, which `everyMs` counts from. Throws a `ConfigurationError` for a cron pattern or a time zone that does not exist.
 *
 * A time of day that a change to summer time skips comes as much later as the clocks are set forward; one that comes twice as
 * they are set back counts once. Patterns for every hour or minute follow the hours and minutes that pass.
 */
export function findNextTime(
  { cron, timeZone = 'UTC', onceAt, everyMs }: Omit<Schedule, 'missed'>,
  { after, since }: { readonly after: number; readonly since: number },
): number | undefined {
  if (onceAt !== undefined) return onceAt > after ? onceAt : undefined
  if (everyMs !== undefined) {
    const passed = Math.max(0, Math.floor((after - since) / everyMs))
    const next = since + (passed + 1) * everyMs
    return isMoment(next) ? next : undefined
  }
  try {
    const pattern = new Cron(cron ?? '', { timezone: timeZone, mode: '5-part' })
    const next = pattern.nextRun(new Date(after))?.getTime()
    return isMoment(next) ? next : undefined
  } catch (error) {
    const fault = isTimeZone(timeZone)
      ? `cannot go by the cron pattern ${JSON.stringify(cron)}: ${formatError(error)} Give five fields, such as '0 3 * * *' for 3:00 every day.`
      : `cannot go by the time zone ${JSON.stringify(timeZone)}, which does not exist. Give the name of one, such as Europe/Berlin.`
    throw new ConfigurationError(`A schedule ${fault}`)
  }
}

function isTimeZone(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** The times alone, of what says more of a schedule. */
export function pickSchedule({ name, cron, timeZone, onceAt, everyMs, missed }: Schedule): Schedule {
  return { ...omitUndefined({ name, cron, timeZone, onceAt, everyMs }), missed }
}

/** The first or next setting of a schedule: when it is due next, unless it is paused. */
export function setSchedule(
  schedule: Schedule & { readonly paused?: boolean | undefined },
  { since, now }: { readonly since: number; readonly now: number },
): Omit<FactOf<'schedule_set'>, 'turn'> {
  const { onceAt, paused = false } = schedule
  // A single time that has passed before is due at once: it was not missed, nobody could have fired it.
  const isPast = onceAt !== undefined && onceAt <= now && since === now
  const nextAt = paused ? undefined : isPast ? now : findNextTime(schedule, { after: now, since })
  const set = { ...omitUndefined({ nextAt }), ...(paused && { paused: true as const }) }
  return { type: 'schedule_set', ...pickSchedule(schedule), ...set }
}

/** What a schedule does next: it waits for its time, starts a run, or ends after its last time. */
export function nextForSchedule(state: RunState, schedule: ScheduleState, now: number): Action | 'over' {
  const { nextAt, paused } = schedule
  if (paused) return { kind: 'suspend' }
  // In an append of its own, so that a command that comes in between cannot undo the firing.
  if (nextAt === undefined) return now > state.at ? 'over' : { kind: 'wait', wakeAt: state.at + 1 }
  if (now < nextAt) return { kind: 'wait', wakeAt: nextAt }
  return { kind: 'fire_schedule', facts: [fire(state, { ...schedule, nextAt }, now)] }
}

/** The firing of a schedule that is due, as its policy for missed times says. */
function fire(
  { runId, turn, startedAt: since }: RunState,
  schedule: ScheduleState & { readonly nextAt: number },
  now: number,
): Fact {
  const { missed: policy } = schedule
  const { last, missed } = findLastDue(schedule, { since, now })
  const isEach = policy === 'each' && missed <= MAX_MISSED
  const scheduledAt = isEach ? schedule.nextAt : last
  const nextAt = findNextTime(schedule, { after: scheduledAt, since })
  const isStarted = policy !== 'skip' || now - scheduledAt <= LATE_MS
  return {
    type: 'schedule_fired',
    turn,
    scheduledAt,
    ...omitUndefined({
      startedRun: isStarted ? deriveRunId(toFiringKey({ runId, schedule }, scheduledAt)) : undefined,
      missed: isEach || missed === 0 ? undefined : missed,
      nextAt,
    }),
  }
}

/**
 * The idempotency key of the run that a schedule starts at a time: whatever process fires it, and however often, the run is the
 * same. A schedule that replaces another of its name starts no second run for a time of that one.
 */
export function toFiringKey(
  { runId, schedule }: { readonly runId: string; readonly schedule?: { readonly name?: string } },
  scheduledAt: number,
): string {
  return `schedule ${schedule?.name ?? runId} ${new Date(scheduledAt).toISOString()}`
}

/** The last time of a schedule that has come by now, and how many came before it and were not fired. */
function findLastDue(
  schedule: ScheduleState & { readonly nextAt: number },
  { since, now }: { readonly since: number; readonly now: number },
): { readonly last: number; readonly missed: number } {
  const { everyMs, nextAt } = schedule
  if (everyMs !== undefined) {
    const missed = Math.floor((now - nextAt) / everyMs)
    return { last: nextAt + missed * everyMs, missed }
  }
  let [last, missed] = [nextAt, 0]
  for (;;) {
    const next = findNextTime(schedule, { after: last, since })
    if (next === undefined || next > now) return { last, missed }
    last = next
    missed++
    // A pattern for each minute, and a year without a process: the rest is not counted.
    if (missed > MAX_MISSED) return { last: Math.max(last, findLastTime(schedule, now) ?? last), missed }
  }
}

function findLastTime({ cron = '', timeZone = 'UTC' }: Schedule, now: number): number | undefined {
  const [last] = new Cron(cron, { timezone: timeZone, mode: '5-part' }).previousRuns(1, new Date(now))
  return last?.getTime()
}
