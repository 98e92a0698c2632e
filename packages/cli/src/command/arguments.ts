import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { Limits } from '@tallystick/core'
import { isJsonObject, omitUndefined, onLimits, readDecimal, readJson } from '@tallystick/core/internal'
import { type JsonObject, limitNames, type OnLimit, type StandingOptions } from '@tallystick/core/vocabulary'
import type { VerifyCheckpointsOptions } from '@tallystick/ledger'
import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import { CommandError } from './exit-code.ts'

/** Declares the arguments and options of every verb that works on a ledger. */
export function declareLedger(verb: Command, description?: string): Command<[string], { json?: true }> {
  if (description !== undefined) verb.description(description)
  return verb
    .argument('<ledger>', 'file or connection string of the ledger')
    .option('--json', 'print JSON; errors too, on stderr')
}

/** Declares the arguments and options of every verb that works on one run. */
export function declareRunArguments(
  verb: Command,
  description?: string,
): Command<[string, string], { json?: true }> {
  return declareLedger(verb, description).argument('<run>', 'id of the run')
}

/** The help of `--config`. */
export const configHelp: string = 'file that exports the agents (default: the nearest tallystick.config.ts)'

/** The help of `--role`. */
export const rolesHelp: string = 'roles of whoever decides, for a call that needs approvers with a role'

/** The name of the account that this process runs under: who decides, unless `--by` names someone else. */
export function readAccountName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the account may have a number only.
    return `user ${process.getuid?.()}`
  }
}

// Parsers of single words. Each throws an `InvalidArgumentError`, which commander completes with the name of the option.

export function parseFilled(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It may not be empty.')
  return text
}

export function parseWholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidArgumentError('It has to be a whole number from 1.')
}

export function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('It has to be a port: 1 to 65535, or 0 for a free one.')
}

export function parsePositiveNumber(text: string): number {
  const value = readDecimal(text)
  if (value > 0) return value
  throw new InvalidArgumentError('It has to be a number above 0.')
}

export function parseJsonObject(text: string): JsonObject {
  try {
    const value = readJson(text)
    if (isJsonObject(value)) return value
  } catch (error) {
    // The message below also fits text that is not JSON.
    if (error instanceof RangeError) throw new InvalidArgumentError(error.message)
  }
  throw new InvalidArgumentError(`It has to be a JSON object, such as '{"quantity":12}'.`)
}

const msByUnit: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
}

/** An age such as `90d`, in milliseconds: seconds, minutes, hours, days, weeks, or years of 365 days. */
export function parseAge(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+)([smhdwy])$/.exec(text) ?? []
  const unitMs = msByUnit[unit]
  const ageMs = Number(amount) * (unitMs ?? Number.NaN)
  if (Number.isSafeInteger(ageMs)) return ageMs
  throw new InvalidArgumentError('It has to be an age such as 12h, 90d or 2y.')
}

/** Which later calls an approval covers, and for how long, such as `session=8h`. */
export function parseStanding(text: string): StandingOptions {
  const [, covered, age = ''] = /^(session|equal_input)=(.*)$/s.exec(text.trim()) ?? []
  const expiresInMs = covered === undefined ? 0 : parseAge(age)
  if ((covered === 'session' || covered === 'equal_input') && expiresInMs > 0)
    return { for: covered, expiresInMs }
  throw new InvalidArgumentError('It has to be session=AGE or equal_input=AGE, such as session=8h.')
}

/** A moment: an age such as `3d`, so long ago, or a date such as `2026-06-30` or `2026-06-30T12:00:00Z`. */
export interface GivenMoment {
  /** As it was given, for commands that repeat it. */
  readonly text: string
  /** Milliseconds ago, or milliseconds since 1970 UTC. */
  readonly agoMs?: number
  readonly at?: number
}

export function parseMoment(text: string): GivenMoment {
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isFinite(at)) return { text, at }
  if (/^\d+[smhdwy]$/.test(text)) return { text, agoMs: parseAge(text) }
  throw new InvalidArgumentError('It has to be an age such as 12h or 3d, or a date such as 2026-06-30.')
}

/** Returns a moment in milliseconds since 1970 UTC. */
export function toTime({ at, agoMs = 0 }: GivenMoment, now: number): number {
  return at ?? now - agoMs
}

const maxEvents = 100_000

/** Numbers of events such as `4,7-9`. */
export function parseEventNumbers(text: string): readonly number[] {
  return text.split(',').flatMap((part) => {
    const [, from = '', to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? []
    const [first, last] = [Number(from), Number(to)]
    if (first < 1 || last < first || !Number.isSafeInteger(last) || last - first >= maxEvents) {
      throw new InvalidArgumentError('They have to be numbers of events such as 4 or 4,7-9.')
    }
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

/** Limits that are numbers: those that a run can reach, and those that shape it. */
const numbers: readonly string[] = [...limitNames, 'maxConcurrency', 'maxApprovalMs', 'graceMs']

/** Adds `name=value` to the limits that earlier options gave. */
export function addLimit(text: string, before: Limits = {}): Limits {
  const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name === 'onLimit') {
    const policy = onLimits.find((known): known is OnLimit => known === value)
    if (policy) return { ...before, onLimit: policy }
    throw new InvalidArgumentError(`onLimit is one of ${onLimits.join(', ')}.`)
  }
  if (!numbers.includes(name)) {
    throw new InvalidArgumentError(
      `Write name=value, such as maxTurns=5, with one of ${numbers.join(', ')}, onLimit.`,
    )
  }
  const max = readDecimal(value)
  if (max >= 0) return { ...before, [name]: max }
  throw new InvalidArgumentError(`${name} has to be a number from 0.`)
}

/** Reads a file that the command line names. Throws a `CommandError` if it cannot be read. */
export function readGiven(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError('not_found', `${file} cannot be read (${reason}). Check the path.`, { cause })
  }
}

export const publicKeyHelp = 'public key of the signer: PEM, or the one-line form of signed notes'
export const originHelp = 'origin that the checkpoints must have'

interface GivenCheckpoints {
  readonly checkpoints?: string
  readonly publicKey?: string
  readonly origin?: string
}

/** Reads which checkpoints are to be compared, if any are. Throws a `CommandError` for a file without a key, or a key without a file. */
export function readCheckpointOptions({
  checkpoints: file,
  publicKey: keyFile,
  origin,
}: GivenCheckpoints): VerifyCheckpointsOptions | undefined {
  if (file === undefined && keyFile === undefined) return undefined
  if (file !== undefined && keyFile !== undefined) {
    return { file, publicKey: readGiven(keyFile), ...omitUndefined({ origin }) }
  }
  throw new CommandError(
    'usage',
    'Checkpoints are verified with the public key of the signer: give both --checkpoints FILE and --public-key FILE.',
  )
}

/** Options of the verbs that drive a run. */
export interface DriveOptions extends AgentOverrides {
  readonly yes?: true
  /** Why every call that waits is denied. */
  readonly deny?: string
  readonly by?: string
  readonly answer?: true
  readonly config?: string
}

/** Options that change an agent. */
export interface AgentOverrides {
  /** File of the instructions. */
  readonly instructions?: string
  /** Id of a model of the configuration. */
  readonly model?: string
  /** Names of tools to remove. */
  readonly withoutTool?: readonly string[]
}

/** Declares the options of the verbs that drive a run. `yes` describes `--yes` where it does not approve every call. */
export function declareDriveOptions<Arguments extends unknown[], Options extends OptionValues>(
  verb: Command<Arguments, Options>,
  yes: string = 'approve every call that waits for an approval',
): Command<Arguments, Options & DriveOptions> {
  verb
    .addOption(new Option('--yes', yes).conflicts('deny'))
    .option('--deny <reason>', 'deny every call that waits for an approval')
    .option('--by <name>', 'who decides (default: the name of your account)', parseFilled)
    .addOption(
      new Option('--answer', 'print only the answer on stdout, the rest on stderr').conflicts('json'),
    )
    .option('--config <file>', configHelp)
    .option('--instructions <file>', 'file of instructions to replace those of the agent')
    .option('--model <id>', 'id of a model of the configuration to replace that of the agent')
    .option(
      '--without-tool <name>',
      'remove this tool from the agent; may be repeated',
      (name: string, before?: readonly string[]) => [...(before ?? []), name],
    )
  return verb
}
