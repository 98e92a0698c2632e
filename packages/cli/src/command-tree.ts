import { Argument, Command, Option } from 'commander'
import type { OutputConfiguration } from 'commander'
import type { JsonObject } from '@tallystick/core'
import { addContract } from './add-contract.ts'
import { addVerb, exampleOf, type Done } from './add-verb.ts'
import { shells, type Shell } from './shells.ts'
import { jsonObject, positiveNumber, wholeNumber } from './given-values.ts'
import type { CommandContext } from './command-context.ts'
import { addWatchingVerbs } from './watching-verbs.ts'
import type { ForkVerbOptions } from './verbs/fork.ts'
import type { ListOptions } from './verbs/list.ts'
import { runStatuses } from './view/run-status.ts'

const afterHelp = `
Exit codes: 0 ok, 1 failed, 2 wrong use, 3 replay diverged, 4 ledger damaged, 5 not found.
RUN is a run's id, an unambiguous beginning or end of it, or "latest".`

/** The command line as commander reads it. Each verb is imported when it is used. */
export function commandTree(context: CommandContext, output: OutputConfiguration, done: Done): Command {
  const program = new Command('tallystick')
    .description(
      'Looks at the runs of a Tallystick ledger, decides about their tool calls, and drives them on.',
    )
    .addHelpText('after', afterHelp)
    .exitOverride()
    .configureOutput(output)
  addLookingVerbs(program, context, done)
  addWatchingVerbs(program, context, done)
  addDecidingVerbs(program, context, done)
  addAnsweringVerbs(program, context, done)
  addDrivingVerbs(program, context, done)
  addKeepingVerbs(program, context, done)
  addContract(program, context, done)
  addCompletion(program, context)
  return program
}

function addCompletion(program: Command, { print }: CommandContext): void {
  program
    .command('completion')
    .description('print a script that makes your shell complete this command')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', exampleOf('completion'))
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion.ts')
      await print(completionScript(program, shell))
    })
}

function addLookingVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'list', 'list the runs, the newest first, and under each those that work for it')
    .option('--session <id>', 'those of this session only')
    .addOption(new Option('--status <status>', 'those that stand so only').choices(runStatuses))
    .action(async (ledger: string, options: Omit<ListOptions, 'ledger'>) => {
      const { list } = await import('./verbs/list.ts')
      done(await list(context, { ledger, ...options }))
    })
  addVerb(program, 'show', 'show the state and the transcript of a run')
    .argument('<run>', 'id of the run')
    .option('--at <seq>', 'as it was right behind this event', wholeNumber)
    .action(async (ledger: string, run: string, options: { at?: number }) => {
      const { show } = await import('./verbs/show.ts')
      done(await show(context, { ledger, run, ...options }))
    })
  addVerb(program, 'explain', 'show which events made up the request of a turn, and what each part is worth')
    .argument('<run>', 'id of the run')
    .argument('<turn>', 'number of the turn', wholeNumber)
    .action(async (ledger: string, run: string, turn: number) => {
      const { explainTurn } = await import('./verbs/explain.ts')
      done(await explainTurn(context, { ledger, run, turn }))
    })
  addVerb(program, 'verify', 'check the chain and the laws of every run')
    .option('--checkpoints <file>', 'compare it with these signed checkpoints too')
    .option('--public-key <file>', 'key of whoever signed them: PEM, or the one-line form of signed notes')
    .option('--origin <name>', 'whose checkpoints they have to be')
    .action(
      async (ledger: string, options: { checkpoints?: string; publicKey?: string; origin?: string }) => {
        const { verify } = await import('./verbs/verify.ts')
        done(await verify(context, { ledger, ...options }))
      },
    )
}

function addKeepingVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'export', 'print the events, one JSON object a line')
    .option('--run <run>', 'of this run only')
    .action(async (ledger: string, options: { run?: string }) => {
      const { exportLedger } = await import('./verbs/export.ts')
      done(await exportLedger(context, { ledger, ...options }))
    })
  addVerb(program, 'import', 'read what export printed into a ledger, which is made where there is none')
    .argument('<file>', 'what export printed; - for standard input')
    .action(async (ledger: string, file: string) => {
      const { importLedger } = await import('./verbs/import.ts')
      done(await importLedger(context, { ledger, file }))
    })
  addVerb(program, 'regression', 'write a run as a test that vitest runs offline against the agents of today')
    .argument('<run>', 'id of the run')
    .requiredOption('--out <file>', 'the test file to write; what the run said goes beside it')
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .option('--redact <patterns...>', 'regular expressions of what else is a secret')
    .action(
      async (ledger: string, run: string, options: { out: string; config?: string; redact?: string[] }) => {
        const { regression } = await import('./verbs/regression.ts')
        done(await regression(context, { ledger, run, ...options }))
      },
    )
  addVerb(program, 'checkpoint', 'sign where every run ends now, so that a rewritten history is found out')
    .requiredOption('--out <file>', 'where the checkpoints are kept, behind each other')
    .requiredOption('--key <file>', 'private Ed25519 key, as PEM')
    .requiredOption('--origin <name>', 'names the ledger to whoever verifies, such as example.com/agents')
    .action(async (ledger: string, options: { out: string; key: string; origin: string }) => {
      const { checkpoint } = await import('./verbs/checkpoint.ts')
      done(await checkpoint(context, { ledger, ...options }))
    })
}

function addDecidingVerbs(program: Command, context: CommandContext, done: Done): void {
  const deciding = (name: string, description: string): Command =>
    addVerb(program, name, description)
      .argument('<run>', 'id of the run')
      .argument('<call>', 'id of the tool call, or an unambiguous end of it')
      .option('--by <name>', 'who decides (default: the name of your account)')

  deciding('approve', 'approve a tool call that waits for it')
    .option('--input <json>', 'run it with this input instead', jsonObject)
    .action(
      async (ledger: string, run: string, call: string, options: { by?: string; input?: JsonObject }) => {
        const { approve } = await import('./verbs/approve.ts')
        done(await approve(context, { ledger, run, call, ...options }))
      },
    )
  deciding('deny', 'deny a tool call that waits for an approval')
    .requiredOption('--reason <text>', 'why; the model reads it')
    .action(async (ledger: string, run: string, call: string, options: { by?: string; reason: string }) => {
      const { deny } = await import('./verbs/deny.ts')
      done(await deny(context, { ledger, run, call, ...options }))
    })
  addVerb(program, 'cancel', 'ask a run to stop')
    .argument('<run>', 'id of the run')
    .option('--by <name>', 'who asks (default: the name of your account)')
    .option('--reason <text>', 'why')
    .action(async (ledger: string, run: string, options: { by?: string; reason?: string }) => {
      const { cancel } = await import('./verbs/cancel.ts')
      done(await cancel(context, { ledger, run, ...options }))
    })
}

function addAnsweringVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'raise', 'raise a limit of a run, such as one that it is suspended at')
    .argument('<run>', 'id of the run')
    .argument('<limit>', 'name of the limit, such as turnsMax')
    .argument('<max>', 'the new maximum', positiveNumber)
    .option('--by <name>', 'who raises it (default: the name of your account)')
    .action(async (ledger: string, ...rest: [string, string, number, { by?: string }]) => {
      const [run, limit, max, options] = rest
      const { raise } = await import('./verbs/raise.ts')
      done(await raise(context, { ledger, run, limit, max, ...options }))
    })
  addVerb(program, 'settle', 'give the result of a tool call that goes on outside')
    .argument('<run>', 'id of the run')
    .argument('<call>', 'id of the tool call, an unambiguous end of it, or its receipt')
    .option('--result <text>', 'what it came to')
    .option('--failed <text>', 'what went wrong')
    .action(
      async (ledger: string, run: string, call: string, options: { result?: string; failed?: string }) => {
        const { settle } = await import('./verbs/settle.ts')
        done(await settle(context, { ledger, run, call, ...options }))
      },
    )
}

function addDrivingVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'resume', 'drive a run on, with the agents of tallystick.config.ts')
    .argument('<run>', 'id of the run')
    .addOption(new Option('--yes', 'approve every call that waits for it').conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)')
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .action(
      async (
        ledger: string,
        run: string,
        options: { yes?: boolean; deny?: string; by?: string; config?: string },
      ) => {
        const { resume } = await import('./verbs/resume.ts')
        done(await resume(context, { ledger, run, ...options }))
      },
    )
  addVerb(program, 'fork', 'drive a new run on that shares the first events of a run')
    .argument('<run>', 'id of the run to fork')
    .requiredOption('--at <seq>', 'the last event that both share', wholeNumber)
    .option('--input <text>', 'what the user says in the place of the last input before it')
    .option('--reason <text>', 'why, for the record')
    .addOption(new Option('--yes', 'approve every call that waits for it').conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who forks and decides (default: the name of your account)')
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, run: string, options: Omit<ForkVerbOptions, 'ledger' | 'run'>) => {
      const { fork } = await import('./verbs/fork.ts')
      done(await fork(context, { ledger, run, ...options }))
    })
  addVerb(
    program,
    'replay',
    'drive a run again with its recorded streams and results, and report where it differs',
  )
    .argument('<run>', 'id of the run')
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, run: string, options: { config?: string }) => {
      const { replay } = await import('./verbs/replay.ts')
      done(await replay(context, { ledger, run, ...options }))
    })
}
