import { parseArgs } from 'node:util'
import { allCases } from '../cases/all-cases.ts'
import { paramsText, type Case } from '../cases/case.ts'
import { listSubjects, type Choice } from './measure-all.ts'

/** What `pnpm bench` was asked for. */
export interface BenchOptions {
  readonly cases: readonly Case[]
  /** Only these subjects; all where none is named. */
  readonly subjects: readonly string[]
  readonly rounds: number
  readonly limitSeconds: number
  /** Tiny numbers, further checks, no figures. */
  readonly smoke: boolean
  /** Without the peers, from the sources of this repository: nothing is installed. */
  readonly own: boolean
  /** The commit whose packages are measured, too: a branch, a tag or an id. */
  readonly before: string | undefined
}

/** A command line that cannot be followed; the message says why. */
export class UsageError extends Error {}

const usageText = `pnpm bench [CASE …] [--rounds N] [--only SUBJECT,…] [--limit SECONDS] [--before REF] [--own] [--smoke]

Cases (all unless named):
${allCases.map(({ name, what }) => `  ${name.padEnd(15)} ${what}`).join('\n')}

  --rounds N        how often each is measured; the medians are printed (default 3)
  --only NAME,…     only these subjects, such as tallystick-sqlite,ai
  --limit SECONDS   how long a run may take before it is ended early (default 20)
  --before REF      also Tallystick as it was at a commit, such as main: before-sqlite beside tallystick-sqlite
  --own             only Tallystick, from the sources; installs nothing
  --smoke           tiny numbers, and checks that every result is right
  --list            the subjects and numbers of each case`

/** The subjects and numbers of each case. */
function listText(): string {
  return allCases
    .map(
      ({ name, own, floors = [], peers, params }) =>
        `${name}\n  own:     ${[...own, ...floors].join(', ')}\n  peers:   ${peers.join(', ') || 'none'}\n  numbers: ${params.map(paramsText).join('; ') || 'none'}`,
    )
    .join('\n')
}

const declared = {
  rounds: { type: 'string', default: '3' },
  only: { type: 'string', default: '' },
  limit: { type: 'string', default: '20' },
  before: { type: 'string' },
  own: { type: 'boolean', default: false },
  smoke: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** Reads the command line. Returns a text where only that is to be printed; throws `UsageError`. */
export function readOptions(args: readonly string[]): BenchOptions | string {
  // pnpm hands a separator on.
  const { values, positionals } = parsed(args[0] === '--' ? args.slice(1) : args)
  if (values.help) return usageText
  if (values.list) return listText()
  const cases = positionals.length === 0 ? allCases : positionals.map(caseNamed)
  return {
    cases,
    subjects: subjectsNamed(values.only, cases, { own: false, before: values.before !== undefined }),
    rounds: count('--rounds', values.rounds),
    limitSeconds: count('--limit', values.limit),
    ...{ smoke: values.smoke, own: values.own },
    before: values.before,
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: declared, allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function caseNamed(name: string): Case {
  const found = allCases.find((each) => each.name === name)
  if (found) return found
  throw new UsageError(`There is no case ${name}. Cases: ${allCases.map((each) => each.name).join(', ')}.`)
}

function subjectsNamed(text: string, cases: readonly Case[], choice: Choice): readonly string[] {
  const known = new Set(cases.flatMap((each) => listSubjects(each, choice).map(({ name }) => name)))
  const names = text.split(',').filter((name) => name !== '')
  for (const name of names) {
    if (known.has(name)) continue
    throw new UsageError(`No chosen case has a subject ${name}. Subjects: ${[...known].join(', ')}.`)
  }
  return names
}

function count(option: string, text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value > 0) return value
  throw new UsageError(`${option} takes a whole number from 1 on, and was given "${text}".`)
}
