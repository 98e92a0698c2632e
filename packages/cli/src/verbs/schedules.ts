import type { Command } from '@commander-js/extra-typings'
import { Option } from '@commander-js/extra-typings'
import type { ScheduleRecord } from '@tallystick/core'
import { omitUndefined, readSchedule, readSchedules } from '@tallystick/core/internal'
import { declareLedger, parseFilled, readAccountName } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { formatTime, toOneLine } from '../command/text.ts'
import { withRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { formatSchedule } from '../view/events.ts'
import { recordCommand } from './decide.ts'

/** Declares `schedules`: lists them, and pauses one or lets it go on. A schedule is a run, and is removed by `cancel`. */
export function declareSchedules(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'list the schedules that start runs by time; pause one; `cancel` removes one')
    .option('--all', 'also those that are over')
    .addOption(
      new Option('--pause <schedule>', 'pause this one').argParser(parseFilled).conflicts('continue'),
    )
    .option('--continue <schedule>', 'let this one go on with its next time', parseFilled)
    .option('--by <name>', 'who asks (default: the name of your account)', parseFilled)
    .option('--reason <text>', 'why, for the record')
    .action(async (ledgerPath, { all = false, pause, continue: paused, by = readAccountName(), reason }) => {
      const run = pause ?? paused
      if (run === undefined) return await listSchedules(context, ledgerPath, all)
      await withRun(context, { ledger: ledgerPath, run }, 'write', async (ledger, runId) => {
        const schedule = await readSchedule(ledger, runId)
        if (schedule === undefined || schedule.isOver) {
          const list = formatCommand(context.programName, 'schedules', ledgerPath)
          throw new CommandError(
            'refused',
            `Run ${runId} is ${schedule ? 'a schedule that is over' : 'no schedule'}. See those that there are: ${list}`,
          )
        }
        const command = { type: 'set_schedule' as const, paused: pause !== undefined, by }
        await recordCommand(context, {
          ledger,
          ledgerPath,
          runId,
          command: { ...command, ...omitUndefined({ reason }) },
        })
      })
    })
}

async function listSchedules(context: CommandContext, ledgerPath: string, all: boolean): Promise<void> {
  await withLedger(ledgerPath, 'read', async (ledger) => {
    let count = 0
    for await (const schedule of readSchedules(ledger, { all })) {
      count++
      await printEither(context, schedule, `${formatLine(schedule, context.columns)}\n`)
    }
    if (count === 0 && !context.json) context.say('No schedule is on record.')
  })
}

function formatLine(schedule: ScheduleRecord, columns = Infinity): string {
  const { scheduleId, agent, started, paused, isOver, nextAt, lastRun } = schedule
  const next = isOver
    ? 'over'
    : paused
      ? 'paused'
      : `next ${nextAt === undefined ? 'never' : formatTime(nextAt)}`
  const last = lastRun === undefined ? [] : [`last run ${lastRun.runId}`]
  const parts = [scheduleId, agent, formatSchedule(schedule), next, `${started} started`, ...last]
  return toOneLine(parts.join(', '), columns)
}
