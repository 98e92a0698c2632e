import { text as textFrom } from 'node:stream/consumers'
import {
  type Agent,
  ConfigurationError,
  createRuntime,
  type Ledger,
  LedgerConflictError,
  type Limits,
} from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { Command } from 'commander'
import { onLedger, withDriveOptions, withLimit } from '../command/arguments.ts'
import { type CommandContext, commandLine, ledgerSource } from '../command/context.ts'
import { CommandError, endingCode, type ExitCode, exitCodes } from '../command/exit-code.ts'
import {
  type AgentOverrides,
  type Configured,
  overrideAgent,
  overrideArguments,
  withConfig,
} from '../drive/agents.ts'
import { interactiveRun } from '../drive/interactive-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** What `run` was given. */
export interface RunVerbOptions extends AgentOverrides {
  /** Created if it does not exist. */
  readonly ledger: string
  /** The arguments after the ledger: the agent's name and the input, or the input alone. */
  readonly words: readonly string[]
  readonly session?: string
  /** Whose data it is: what is said is sealed under a key of theirs. */
  readonly subject?: string
  /** Waits for the end of the session's run that is under way. */
  readonly wait?: boolean
  readonly limit?: Limits
  readonly yes?: boolean
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  readonly config?: string
}

/** Declares what `run` takes. */
export function declareRun(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .usage('[options] <ledger> [agent] <text>')
    .argument('[agent]', 'its name; needed only if the configuration has several agents')
    .argument('[text]', 'input of the run; - reads it from standard input')
    .option('--session <id>', 'the conversation that the run continues, or begins')
    .option(
      '--subject <id>',
      'the person or customer that the run is about: content is encrypted with their key in the keyring of TALLYSTICK_KEYS',
    )
    .option('--wait', 'if a run of the session is under way, wait for its end')
    .option('--limit <name=value>', 'a limit of this run, such as maxTurns=5; may be repeated', withLimit)
  withDriveOptions(verb).action(
    async (
      ledger: string,
      agent?: string,
      text?: string,
      options: Omit<RunVerbOptions, 'ledger' | 'words'> = {},
    ) => {
      const words = [agent, text].filter((word) => word !== undefined)
      done(await run(context, { ledger, words, ...options }))
    },
  )
}

/**
 * `run`: starts a run of an agent of the configuration, and drives it until it is done, or suspended without a person
 * to ask. With `--json` it prints the events, one per line, and the result as the last line. Ctrl-C ends the run.
 */
export async function run(context: CommandContext, options: RunVerbOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, words, config: file } = options
  const [agent, text] = words.length > 1 ? [words[0], words[1]] : [undefined, words[0]]
  if (options.subject !== undefined && (context.environment['TALLYSTICK_KEYS'] ?? '') === '') {
    throw new CommandError(
      'usage',
      '--subject encrypts the content of the run, which needs a keyring. Name its file in TALLYSTICK_KEYS.',
    )
  }
  const input = await inputOf(context, text)
  const verb = 'run' as const
  const asked = { verb, ledgerPath: ledgerSource(ledgerPath, context.workingDirectory) }
  const configFor = { file, context: { ...asked, ...(agent !== undefined && { agent }) } }
  return await withConfig(context, configFor, async (configured) => {
    const named = agent === undefined ? onlyAgent(configured, input) : agentNamed(configured, agent)
    const chosen = overrideAgent(named, options, configured)
    return await withLedger(ledgerPath, 'make', (ledger) =>
      startRun(context, options, { ledger, configured, chosen, input }),
    )
  })
}

/** What a run is started with. */
interface Start {
  readonly ledger: Ledger
  readonly configured: Configured
  readonly chosen: Agent<unknown>
  readonly input: string
}

async function startRun(
  context: CommandContext,
  options: RunVerbOptions,
  { ledger, configured: { agents, prices, rules, context: own }, chosen, input }: Start,
): Promise<ExitCode> {
  const { ledger: ledgerPath, session: sessionId, subject, wait, limit: limits } = options
  const { yes, deny, by, answer } = options
  const others = agents.filter(({ name }) => name !== chosen.name)
  const runtime = createRuntime({
    ledger,
    agents: [chosen, ...others],
    ...rules,
    ...omitUndefined({ prices }),
  })
  const started = runtime.run(chosen, input, {
    ...omitUndefined({ sessionId, subject, limits, context: own }),
    ...(wait === true && { whenBusy: 'wait' }),
  })
  let interrupted = false
  const cancel = (): Promise<unknown> => {
    interrupted = true
    return started.cancel('Ctrl-C')
  }
  const drain = (): Promise<unknown> => runtime.drain()
  const resumeArguments = overrideArguments(options)
  const interaction = { ledgerPath, yes, deny, by, answer, drain, cancel, resumeArguments, eventLines: true }
  const result = await interactiveRun(context, started, interaction).catch((error: unknown) => {
    throw busySession(error, context, options) ?? error
  })
  return interrupted ? exitCodes.interrupted : endingCode(result)
}

async function inputOf({ stdin }: CommandContext, given: string | undefined): Promise<string> {
  const input = given === '-' ? (await textFrom(stdin)).trimEnd() : given
  if (input !== undefined && input.trim() !== '') return input
  const what = given === '-' ? 'Standard input is empty' : 'There is no text'
  throw new CommandError(
    'usage',
    `${what}, so the agent would not know what to do. Say it: tallystick run LEDGER AGENT TEXT`,
  )
}

/** Naming an agent and forgetting the text would give the agent its own name as input. */
function onlyAgent({ named, agents }: Configured, input: string): Agent<unknown> {
  const [agent] = named
  if (agents.some(({ name }) => name === input)) {
    throw new CommandError(
      'usage',
      `${input} is an agent. Give its input after its name; - reads the input from standard input.`,
    )
  }
  if (agent !== undefined && named.length === 1) return agent
  throw new CommandError('usage', `Which agent is meant? ${agentsText(named)} Name one in front of the text.`)
}

function agentNamed({ named, agents }: Configured, given: string): Agent<unknown> {
  const agent = agents.find(({ name }) => name === given)
  if (agent !== undefined) return agent
  throw new ConfigurationError(
    `There is no agent ${given}, so nothing was started. ${agentsText(named)} Put an input of several words in quotes.`,
  )
}

function agentsText(named: readonly Agent<unknown>[]): string {
  const names = named.map(({ name }) => name).join(', ') || 'none'
  return `The configuration has: ${names}.`
}

/** A conversation has one run at a time: what to do about the other one, in words of the command line. */
function busySession(
  error: unknown,
  { programName }: CommandContext,
  { ledger, session }: RunVerbOptions,
): CommandError | undefined {
  if (session === undefined || !(error instanceof LedgerConflictError) || error.kind !== 'session')
    return undefined
  const list = commandLine(programName, 'list', ledger, '--session', session)
  const { busy } = error
  if (busy?.status === 'interrupted') {
    const resume = commandLine(programName, 'resume', ledger, busy.runId)
    return new CommandError(
      'refused',
      `Session ${session} has a run that was interrupted: it has not ended, and no process drives it. Continue it: ` +
        `${resume}\nOr end it with cancel. Then start this one again.`,
      { cause: error },
    )
  }
  return new CommandError(
    'refused',
    `Session ${session} has a run that has not ended, and two at the same time would be two histories. See it: ${list}\n` +
      'Continue it with resume, end it with cancel, or give --wait to begin after its end; waiting ends if the run records nothing for ten minutes.',
    { cause: error },
  )
}
