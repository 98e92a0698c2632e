import type { Agent } from '../agent/agent.ts'
import { pickGiven } from '../events/agent-definition.ts'
import type { StartCommand } from '../events/commands.ts'
import type { Message } from '../events/content.ts'
import { LAST_MOMENT, type Schedule } from '../events/event-parts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { readMessages } from '../machine/history.ts'
import { findNextTime, pickSchedule, toFiringKey } from '../machine/schedule.ts'
import type { RunState, ScheduleState } from '../machine/state.ts'
import { ConfigurationError } from '../values/errors.ts'
import { deriveRunId, parseRunId, type RunId } from '../values/ids.ts'
import { isSameJson, omitUndefined } from '../values/json.ts'
import { requireOptions } from '../values/option.ts'
import type { Stretch } from './drive.ts'
import { loadState } from './run-result.ts'
import type { RunRegistry } from './run-registry.ts'
import {
  type InContext,
  scheduleOptions,
  type ScheduleOptions,
  type ScheduleRecord,
} from './runtime-options.ts'
import type { RuntimeParts } from './runtime-parts.ts'
import { parseInput, resolveOptions, startCommand, withDefaults } from './start-run.ts'

function toSchedule({ cron, timeZone, at, every, missed = 'once', name }: ScheduleOptions): Schedule {
  const given = [cron, at, every].filter((time) => time !== undefined)
  if (given.length !== 1) {
    throw new ConfigurationError(
      `A schedule goes by one of cron, at and every, and ${given.length} of them were given. Give one; for several, set several schedules.`,
    )
  }
  if (timeZone !== undefined && cron === undefined) {
    throw new ConfigurationError(
      `A timeZone (${timeZone}) says how a cron pattern is read; at and every are the same moment everywhere. Leave it out, or give cron.`,
    )
  }
  const zone = cron === undefined ? undefined : (timeZone ?? 'UTC')
  const onceAt = at === undefined ? undefined : Math.min(Number(at), LAST_MOMENT)
  return { ...omitUndefined({ name, cron, timeZone: zone, onceAt, everyMs: every }), missed }
}

/** Puts a schedule on record, unless it is there, and drives it here unless it is told not to. */
export async function setSchedule(
  runs: RunRegistry,
  agent: Agent<unknown>,
  options: InContext<ScheduleOptions>,
): Promise<ScheduleRecord> {
  requireOptions('schedule', scheduleOptions, options)
  runs.requireOpen()
  const { ledger, host, agents, defaults, newId } = runs.parts
  const { input, cron, timeZone: _zone, at, every, missed: _missed, name, drive = true, ...own } = options
  const schedule = toSchedule(options)
  const now = host.clock.now()
  if (at === undefined && findNextTime(schedule, { after: now, since: now }) === undefined) {
    throw new ConfigurationError(
      cron === undefined
        ? `The first time of a schedule that goes off every ${every} milliseconds comes after the year 9999, which no ledger can hold. Give fewer.`
        : `The cron pattern ${JSON.stringify(cron)} of a schedule never comes, such as the 30th of February. Correct it.`,
    )
  }
  const given = resolveOptions(agents.register(agent), withDefaults(own, defaults), agents)
  const { message, before } = parseInput(input)
  const about = { ...omitUndefined({ limits: own.limits, defaults: defaults.limits }), given }
  const { register } = agents
  const command = startCommand(newId(), register(agent), message, {
    ...about,
    register,
    context: own.context,
  })
  const wanted = { ...command, ...omitUndefined({ subject: own.subject }), schedule, history: before }
  const replaced: RunState[] = []
  for (let place = 1; ;) {
    // Removed and replaced ones keep their ids.
    const runId = name === undefined ? command.runId : deriveRunId(`schedule ${name} ${place}`)
    const there = await loadState(ledger, runId)
    if (there && (there.phase === 'done' || !isSame(there, wanted))) {
      if (there.phase !== 'done') replaced.push(there)
      place++
      continue
    }
    try {
      const { driver, same } = runs.start(agent, input, own, { runId, given, schedule, isQueued: !drive })
      await same
      if (drive) await driver.created
      else await driver.result
      if (drive && there) driver.drive({ withChildren: false })
    } catch (error) {
      if (!(error instanceof ConfigurationError) || error.code !== 'key_used') throw error
      // Set otherwise in this moment: the one that came later replaces it.
      if ((await loadState(ledger, runId)) === undefined) await runs.ensureDriver(runId).created
      continue
    }
    const begun = (await loadState(ledger, runId))?.schedule
    if (begun && !isSameJson(pickSchedule(begun), schedule)) continue
    for (const state of replaced)
      await runs
        .driverFor(state.runId, own)
        .send({ type: 'cancel', reason: `Schedule ${name} was set anew as ${runId}.` })
    return await readRecord(ledger, runId)
  }
}

function isSame(state: RunState, command: StartCommand): boolean {
  const { history = [], input } = command
  const messages = [...history, ...(input ? [input] : [])]
  const pick = (run: RunState | StartCommand, said: readonly Message[]) => ({
    agent: run.agent,
    limits: run.limits,
    ...pickGiven(run),
    ...omitUndefined({ subject: run.subject, schedule: run.schedule && pickSchedule(run.schedule) }),
    said,
  })
  return isSameJson(pick(state, readMessages(state.history)), pick(command, messages))
}

/** Starts the run of a schedule for one of its times, unless it is on record already, and has it driven. */
export async function startScheduledRun(
  state: RunState,
  scheduledAt: number,
  {
    parts,
    context,
    stretch,
  }: { readonly parts: RuntimeParts; readonly context: unknown; readonly stretch: Stretch | undefined },
): Promise<void> {
  const { ledger, agents, runs } = parts
  const idempotencyKey = toFiringKey(state, scheduledAt)
  const runId = deriveRunId(idempotencyKey)
  const agent = agents.find(state.agent)
  if (agent && (await ledger.head(runId)) === undefined) {
    const { limits, subject } = state
    const given = { ...pickGiven(state), idempotencyKey }
    const own = { limits, ...omitUndefined({ subject, context }) }
    const { driver, same } = runs.start(agent, readMessages(state.history), own, {
      runId,
      given,
      isQueued: true,
    })
    await same
    await driver.result
  }
  if (stretch) stretch.started.add(runId)
  else runs.driverFor(runId, { context }).drive({ withChildren: true })
}

/** The schedules of a ledger, in the order in which they were set; with `all`, also those that are over. */
export async function* readSchedules(
  ledger: Ledger,
  { all = false }: { readonly all?: boolean } = {},
): AsyncGenerator<ScheduleRecord, void, undefined> {
  const seen = new Set<RunId>()
  for await (const { runId } of ledger.find({ types: ['schedule_set'] })) {
    if (seen.has(runId)) continue
    seen.add(runId)
    const record = await readSchedule(ledger, runId)
    if (record && (all || !record.isOver)) yield record
  }
}

/** A schedule by its id; `undefined` if the ledger has no schedule of that id. */
export async function readSchedule(ledger: Ledger, scheduleId: string): Promise<ScheduleRecord | undefined> {
  const runId = parseRunId(scheduleId)
  const state = runId && (await loadState(ledger, runId))
  return state?.schedule && toRecord(state, state.schedule)
}

async function readRecord(ledger: Ledger, runId: RunId): Promise<ScheduleRecord> {
  const record = await readSchedule(ledger, runId)
  if (record) return record
  throw new ConfigurationError(
    `Run ${runId} is on record, and is no schedule. Set the schedule under another name.`,
  )
}

function toRecord(state: RunState, schedule: ScheduleState): ScheduleRecord {
  const { runId: scheduleId, agent, owner, phase, history } = state
  const { paused = false, nextAt, started, lastRun } = schedule
  const isOver = phase === 'done'
  return {
    scheduleId,
    ...pickSchedule(schedule),
    agent,
    paused,
    started,
    ...omitUndefined({ owner, nextAt: isOver ? undefined : nextAt, lastRun }),
    input: readMessages(history),
    isOver,
  }
}
