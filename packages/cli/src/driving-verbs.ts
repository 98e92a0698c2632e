import { Option, type Command } from 'commander'
import { addVerb, type Done } from './add-verb.ts'
import type { CommandContext } from './command-context.ts'
import { withLimit } from './given-limits.ts'
import { wholeNumber } from './given-values.ts'
import type { ForkVerbOptions } from './verbs/fork.ts'
import type { ResumeOptions } from './verbs/resume.ts'
import type { RunVerbOptions } from './verbs/run.ts'

type RunOptions = Omit<RunVerbOptions, 'ledger' | 'words'>

/** Adds what drives runs, with the agents of a configuration. */
export function addDrivingVerbs(program: Command, context: CommandContext, done: Done): void {
  driving(addVerb(program, 'run', 'start a run of one of your agents, and show it while it goes on'))
    .usage('[options] <ledger> [agent] <text>')
    .argument('[agent]', 'its name; may be left out where the configuration has one agent')
    .argument('[text]', 'what it is to do; - reads it from standard input')
    .option('--session <id>', 'the conversation that the run goes on with, or begins')
    .option('--wait', 'begin behind the end of the run of the session that is under way')
    .option('--limit <name=value>', 'a limit of this run, such as turnsMax=5; may be repeated', withLimit)
    .action(async (ledger: string, agent?: string, text?: string, options: RunOptions = {}) => {
      const { run } = await import('./verbs/run.ts')
      const words = [agent, text].filter((word) => word !== undefined)
      done(await run(context, { ledger, words, ...options }))
    })
  driving(addVerb(program, 'resume', 'take a run further: after a decision, a stop or a crash'))
    .argument('<run>', 'id of the run')
    .action(async (ledger: string, run: string, options: Omit<ResumeOptions, 'ledger' | 'run'>) => {
      const { resume } = await import('./verbs/resume.ts')
      done(await resume(context, { ledger, run, ...options }))
    })
  driving(addVerb(program, 'fork', 'start a run that shares the first events of another'))
    .argument('<run>', 'id of the run to fork')
    .requiredOption('--at <seq>', 'the last event that both share', wholeNumber)
    .option('--input <text>', 'what the user says in the place of the last input before it')
    .option('--reason <text>', 'why, for the record')
    .action(async (ledger: string, run: string, options: Omit<ForkVerbOptions, 'ledger' | 'run'>) => {
      const { fork } = await import('./verbs/fork.ts')
      done(await fork(context, { ledger, run, ...options }))
    })
}

/** The options that every verb has which drives a run. */
function driving(verb: Command): Command {
  return verb
    .addOption(new Option('--yes', 'approve every call that waits for it').conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)')
    .addOption(new Option('--answer', 'print the answer alone; the rest goes to stderr').conflicts('json'))
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
}
