// Proves that the tests would notice: breaks one guard at a time in a copy of a package, runs its tests, and demands
// red. Slow, so not a part of verify: `pnpm mutate`, or `pnpm mutate WORD` for the faults that hold a word, such as the
// name of a subject (core, sqlite, postgres).
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Mutation } from './mutations/mutation.ts'
import { subjects, type Subject } from './mutations/subject.ts'

const repository = join(import.meta.dirname, '..')
const minutesMax = 3

interface Trial {
  readonly red: boolean
  readonly seconds: number
  /** The first test that noticed, or how else the tests ended. */
  readonly how: string
  /** Whether it was a test that noticed. */
  readonly isNamed: boolean
}

/** A package by itself, with what is installed for it: the tests import it by its name, and so get the copy. */
function copyOf(place: string): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-mutate-'))
  for (const part of ['src', 'test', 'package.json', 'README.md']) {
    cpSync(join(repository, place, part), join(root, place, part), { recursive: true })
  }
  for (const file of ['vitest.config.ts', 'package.json']) cpSync(join(repository, file), join(root, file))
  for (const modules of ['node_modules', join(place, 'node_modules')]) {
    symlinkSync(join(repository, modules), join(root, modules))
  }
  return root
}

function runTests(root: string, { tests }: Subject): Trial {
  const report = join(root, 'report.json')
  rmSync(report, { force: true })
  const begins = performance.now()
  const { status } = spawnSync(
    join(repository, 'node_modules/.bin/vitest'),
    ['run', '--root', root, '--bail', '1', '--reporter', 'json', '--outputFile', report, ...tests],
    { cwd: root, encoding: 'utf8', timeout: minutesMax * 60_000, killSignal: 'SIGKILL' },
  )
  const seconds = (performance.now() - begins) / 1_000
  if (status === 0) return { red: false, seconds, how: 'every test passes', isNamed: true }
  if (status === null) {
    return { red: true, seconds, how: `the tests hang for ${minutesMax} minutes`, isNamed: true }
  }
  return { red: true, seconds, ...firstFailure(report) }
}

function firstFailure(report: string): Pick<Trial, 'how' | 'isNamed'> {
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: {
      name: string
      status: string
      message: string
      assertionResults: { status: string; fullName: string }[]
    }[]
  }
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find((each) => each.status === 'failed')
  if (failed) return { how: failed.fullName, isNamed: true }
  const { name = 'no file at all', message = '' } = testResults.find((each) => each.status === 'failed') ?? {}
  return { how: `an error outside of any test, in ${name}: ${message.split('\n')[0]}`, isNamed: false }
}

/** Runs the tests over one fault. */
function tryMutation(root: string, subject: Subject, { file, find, replace }: Mutation): Trial {
  const path = join(root, subject.place, 'src', file)
  const sound = readFileSync(path, 'utf8')
  try {
    writeFileSync(path, sound.split(find).join(replace))
    const trial = runTests(root, subject)
    // What no test has noticed may have been something else on this machine.
    return trial.isNamed ? trial : runTests(root, subject)
  } finally {
    writeFileSync(path, sound)
  }
}

/** A fault that does not fit the sources any more would prove nothing. */
function requireFitting({ place, mutations }: Subject): void {
  const stale = mutations.filter(({ file, find }) => {
    return readFileSync(join(repository, place, 'src', file), 'utf8').split(find).length !== 2
  })
  if (stale.length === 0) return
  const list = stale.map(({ file, fault }) => `  ${file}: ${fault}`).join('\n')
  throw new Error(`These mutations do not fit their file exactly once; bring them up to date:\n${list}`)
}

/** Tries every mutation of a subject; answers how many no test has noticed. */
function survivorsOf(subject: Subject): number {
  const root = copyOf(subject.place)
  try {
    const control = runTests(root, subject)
    if (control.red) throw new Error(`The tests are red before anything is broken: ${control.how}`)
    console.log(`sound ${control.seconds.toFixed(0).padStart(4)} s  ${subject.name}: ${control.how}`)
    let survivors = 0
    for (const mutation of subject.mutations) {
      const { red, seconds, how } = tryMutation(root, subject, mutation)
      if (!red) survivors++
      console.log(
        `${red ? 'red  ' : 'GREEN'} ${seconds.toFixed(0).padStart(4)} s  ${mutation.file}: ${mutation.fault}  <-  ${how}`,
      )
    }
    return survivors
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const word = process.argv[2] ?? ''
const chosen = subjects
  .map((subject) => ({
    ...subject,
    mutations: subject.mutations.filter(({ file, fault }) =>
      `${subject.name} ${file} ${fault}`.includes(word),
    ),
  }))
  .filter(({ mutations }) => mutations.length > 0)
chosen.forEach(requireFitting)
const survivors = chosen.reduce((sum, subject) => sum + survivorsOf(subject), 0)
const tried = chosen.reduce((sum, { mutations }) => sum + mutations.length, 0)
console.log(`mutations: ${tried} tried, ${survivors} survived`)
process.exitCode = survivors > 0 ? 1 : 0
