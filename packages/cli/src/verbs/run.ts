import { text as textFrom } from 'node:stream/consumers'
import { type Agent, ConfigurationError, LedgerConflictError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { Command } from '@commander-js/extra-typings'
import { declareLedger, declareDriveOptions, addLimit } from '../command/arguments.ts'
import { type CommandContext, formatCommand, toLedgerSource } from '../command/context.ts'
import { CommandError, toExitCode, exitCodes } from '../command/exit-code.ts'
import {
  type Configured,
  createConfiguredRuntime,
  overrideAgent,
  overrideArguments,
  withConfig,
} from '../drive/agents.ts'
import { runInteractively } from '../drive/interactive-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** Declares `run`. With `--json` it prints the events, one per line, and the result as the last line. Ctrl-C ends the run. */
export function declareRun(verb: Command, context: CommandContext, done: Done): void {
  const declared = declareLedger(verb)
    .usage('[options] <ledger> [agent] <text>')
    .argument('[agent]', 'its name; needed only if the configuration has several agents')
    .argument('[text]', 'input of the run; - reads it from standard input')
    .option('--session <id>', 'the conversation that the run continues, or begins')
    .option(
      '--subject <id>',
      'the person or customer that the run is about: content is encrypted with their key in the keyring of TALLYSTICK_KEYS',
    )
    .option('--wait', 'if a run of the session is under way, wait for its end')
    .option('--limit <name=value>', 'a limit of this run, such as maxTurns=5; may be repeated', addLimit)
  declareDriveOptions(declared).action(async (ledgerPath, first, second, options) => {
    // A single word is the text.
    const [agent, text] = second === undefined ? [undefined, first] : [first, second]
    const { session: sessionId, subject, wait, limit: limits, config: file } = options
    const { yes, deny, by, answer } = options
    if (subject !== undefined && (context.environment['TALLYSTICK_KEYS'] ?? '') === '') {
      throw new CommandError(
        'usage',
        '--subject encrypts the content of the run, which needs a keyring. Name its file in TALLYSTICK_KEYS.',
      )
    }
    const input = await readInput(context, text)
    const place = toLedgerSource(ledgerPath, context.workingDirectory)
    const configContext = { verb: 'run' as const, ledgerPath: place, ...omitUndefined({ agent }) }
    await withConfig(context, { file, context: configContext }, async (configured) => {
      const named = agent === undefined ? findOnlyAgent(configured, input) : findAgent(configured, agent)
      const chosen = overrideAgent(named, options, configured)
      await withLedger(ledgerPath, 'make', async (ledger) => {
        const others = configured.agents.filter(({ name }) => name !== chosen.name)
        const runtime = createConfiguredRuntime(ledger, { ...configured, agents: [chosen, ...others] })
        const started = runtime.run(chosen, input, {
          ...omitUndefined({ sessionId, subject, limits, context: configured.context }),
          ...(wait === true && { whenBusy: 'wait' }),
        })
        let interrupted = false
        const cancel = (): Promise<unknown> => {
          interrupted = true
          return started.cancel('Ctrl-C')
        }
        const result = await runInteractively(context, started, {
          ...{ ledgerPath, yes, deny, by, answer, cancel, eventLines: true },
          drain: () => runtime.drain(),
          resumeArguments: overrideArguments(options),
        }).catch((error: unknown) => {
          const isBusy = error instanceof LedgerConflictError && error.kind === 'session'
          throw isBusy && sessionId !== undefined
            ? createBusySessionError(error, context, ledgerPath, sessionId)
            : error
        })
        done(interrupted ? exitCodes.interrupted : toExitCode(result))
      })
    })
  })
}

async function readInput({ stdin }: CommandContext, given: string | undefined): Promise<string> {
  const input = given === '-' ? (await textFrom(stdin)).trimEnd() : given
  if (input !== undefined && input.trim() !== '') return input
  const what = given === '-' ? 'Standard input is empty' : 'There is no text'
  throw new CommandError(
    'usage',
    `${what}, so the agent would not know what to do. Give it: tallystick run LEDGER AGENT TEXT`,
  )
}

/** A user who names an agent and forgets the text must not send the agent its own name. */
function findOnlyAgent({ named, agents }: Configured, input: string): Agent<unknown> {
  const [agent] = named
  if (agents.some(({ name }) => name === input)) {
    throw new CommandError(
      'usage',
      `${input} is an agent. Give its input after its name; - reads the input from standard input.`,
    )
  }
  if (agent !== undefined && named.length === 1) return agent
  throw new CommandError('usage', `Which agent is meant? ${formatAgents(named)} Name one before the text.`)
}

function findAgent({ named, agents }: Configured, given: string): Agent<unknown> {
  const agent = agents.find(({ name }) => name === given)
  if (agent !== undefined) return agent
  throw new ConfigurationError(
    `There is no agent ${given}, so nothing was started. ${formatAgents(named)} Put an input of several words in quotes.`,
  )
}

function formatAgents(named: readonly Agent<unknown>[]): string {
  const names = named.map(({ name }) => name).join(', ') || 'none'
  return `The configuration has: ${names}.`
}

/** A session has one run at a time. Says in words of the command line what to do about the other run. */
function createBusySessionError(
  error: LedgerConflictError,
  { programName }: CommandContext,
  ledger: string,
  session: string,
): CommandError {
  const { busy } = error
  if (busy?.status === 'interrupted') {
    const resume = formatCommand(programName, 'resume', ledger, busy.runId)
    return new CommandError(
      'refused',
      `Session ${session} has a run that was interrupted: it has not ended, and no process drives it. Continue it: ` +
        `${resume}\nOr end it with cancel. Then start this one again.`,
      { cause: error },
    )
  }
  const list = formatCommand(programName, 'list', ledger, '--session', session)
  return new CommandError(
    'refused',
    `Session ${session} has a run that has not ended, and two at the same time would be two histories. See it: ${list}\n` +
      'Continue it with resume, end it with cancel, or give --wait to begin after its end; waiting ends if the run records nothing for ten minutes.',
    { cause: error },
  )
}
