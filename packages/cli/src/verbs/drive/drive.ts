import { Option, type Command } from 'commander'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { withLimit } from '../../command/given-limits.ts'
import { filledText, wholeNumber } from '../../command/parse-args.ts'
import type { ForkVerbOptions } from './fork.ts'
import type { ResumeOptions } from './resume.ts'
import type { RunVerbOptions } from './run.ts'

type RunOptions = Omit<RunVerbOptions, 'ledger' | 'words'>
/** What a verb is given behind the ledger and the run. */
type Own<Options> = Omit<Options, 'ledger' | 'run'>

/** Adds what drives runs, with the agents of a configuration. */
export function addDriveVerbs(program: Command, context: CommandContext, done: Done): void {
  const running = addVerb(program, 'run', 'start a run of one of your agents, and show it while it goes on')
    .usage('[options] <ledger> [agent] <text>')
    .argument('[agent]', 'its name; may be left out where the configuration has one agent')
    .argument('[text]', 'what it is to do; - reads it from standard input')
    .option('--session <id>', 'the conversation that the run goes on with, or begins')
    .option(
      '--subject <id>',
      'whose data it is: it is sealed under a key of theirs, in the keyring of TALLYSTICK_KEYS',
    )
    .option('--wait', 'begin behind the end of the run of the session that is under way')
    .option('--limit <name=value>', 'a limit of this run, such as turnsMax=5; may be repeated', withLimit)
  withDriveOptions(running).action(
    async (ledger: string, agent?: string, text?: string, options: RunOptions = {}) => {
      const { run } = await import('./run.ts')
      const words = [agent, text].filter((word) => word !== undefined)
      done(await run(context, { ledger, words, ...options }))
    },
  )
  const resuming = addVerb(
    program,
    'resume',
    'take a run further: after a decision, a stop or a crash',
  ).argument('<run>', 'id of the run')
  withDriveOptions(resuming).action(async (ledger: string, run: string, options: Own<ResumeOptions>) => {
    const { resume } = await import('./resume.ts')
    done(await resume(context, { ledger, run, ...options }))
  })
  const forking = addVerb(program, 'fork', 'start a run that shares the first events of another')
    .argument('<run>', 'id of the run to fork')
    .option(
      '--at <seq>',
      'the last event that both share (default: as late as what is edited allows)',
      wholeNumber,
    )
    .option('--input <text>', 'what the user says in the place of the last input before it')
    .option('--result <call text...>', 'another result of a call: an end of its id, and what it came to')
    .option('--failed <call text...>', 'the same for a call that is to have failed')
    .option('--reason <text>', 'why, for the record')
    .option('--run-writes', 'perform writes that no recorded result answers: once more, and for real')
  withDriveOptions(forking).action(async (ledger: string, run: string, options: Own<ForkVerbOptions>) => {
    const { fork } = await import('./fork.ts')
    done(await fork(context, { ledger, run, ...options }))
  })
}

/** The options that every verb has which drives a run. */
function withDriveOptions(verb: Command): Command {
  return verb
    .addOption(new Option('--yes', 'approve every call that waits for it').conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)', filledText)
    .addOption(new Option('--answer', 'print the answer alone; the rest goes to stderr').conflicts('json'))
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .option('--instructions <file>', 'other instructions for the agent')
    .option('--model <id>', 'another model, of those that the configuration knows')
    .option('--without-tool <name>', 'a tool that the agent is not to have; may be repeated', withName)
}

/** One more name of the command line, behind those before it. */
function withName(name: string, before: readonly string[] = []): readonly string[] {
  return [...before, name]
}
