import { Option, type Command } from 'commander'
import { addVerb, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import type { RegressionVerbOptions } from './regression.ts'
import type { ReplayVerbOptions } from './replay.ts'
import type { VerifyOptions } from './verify.ts'

/** Adds what finds out whether a ledger is what was written, and whether today's agents still do what is in it. */
export function addCheckVerbs(program: Command, context: CommandContext, done: Done): void {
  addVerb(program, 'verify', 'check the chain and the laws of every run')
    .addOption(new Option('--run <run>', 'this run only').conflicts('checkpoints'))
    .option('--checkpoints <file>', 'compare it with these signed checkpoints too')
    .option('--public-key <file>', 'key of whoever signed them: PEM, or the one-line form of signed notes')
    .option('--origin <name>', 'whose checkpoints they have to be')
    .action(async (ledger: string, options: Omit<VerifyOptions, 'ledger'>) => {
      const { verify } = await import('./verify.ts')
      done(await verify(context, { ledger, ...options }))
    })
  addVerb(
    program,
    'replay',
    'drive a run again with its recorded streams and results, and report where it differs',
  )
    .summary('drive a run again from its record, and report where it differs')
    .argument('<run>', 'id of the run')
    .option(
      '--same-words',
      'take what the agents tell their models from the record: compare what the code does',
    )
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, run: string, options: Omit<ReplayVerbOptions, 'ledger' | 'run'>) => {
      const { replay } = await import('./replay.ts')
      done(await replay(context, { ledger, run, ...options }))
    })
  addVerb(program, 'regression', 'write a run as a test that vitest runs offline against the agents of today')
    .summary('write a run as a test that vitest runs offline')
    .argument('<run>', 'id of the run')
    .requiredOption('--out <file>', 'the test file to write; what the run said goes beside it')
    .option('--config <file>', 'where the agents are (default: the nearest tallystick.config.ts)')
    .option('--redact <patterns...>', 'regular expressions of what else is a secret')
    .option('--same-words', 'let the test take what the agents tell their models from the record')
    .action(async (ledger: string, run: string, options: Omit<RegressionVerbOptions, 'ledger' | 'run'>) => {
      const { regression } = await import('./regression.ts')
      done(await regression(context, { ledger, run, ...options }))
    })
  addVerb(program, 'checkpoint', 'sign where every run ends now, so that a rewritten history is found out')
    .summary('sign where every run ends now')
    .requiredOption('--out <file>', 'where the checkpoints are kept, behind each other')
    .requiredOption('--key <file>', 'private Ed25519 key, as PEM')
    .requiredOption('--origin <name>', 'names the ledger to whoever verifies, such as example.com/agents')
    .action(async (ledger: string, options: { out: string; key: string; origin: string }) => {
      const { checkpoint } = await import('./checkpoint.ts')
      done(await checkpoint(context, { ledger, ...options }))
    })
}
