// A process that runs tests of this repository, one trial after the other, without reading the sources again: between two
// trials only the module that is replaced is loaded anew. Each trial runs in processes of its own, which vitest starts.
import { join, relative } from 'node:path'
import { BaseSequencer, createVitest, type Reporter, type TestSpecification, type Vitest } from 'vitest/node'
import { allTests } from '../../testing/selection.ts'
import type { Outcome, Report, Trial } from './message.ts'
import { sharesProcess, trialEnvironment } from './trial-conditions.ts'

const root = join(import.meta.dirname, '../../..')
const send = (report: Report): void => void process.send?.(report)

/** The trial that runs now, and what has been seen of it. */
let trial: Trial = { tests: [] }
let isLoaded = false
let failure: Extract<Outcome, { readonly kind: 'failed' }> | undefined
/** Whether vitest has ended the run before the last test: it does so when one has failed. */
let isInterrupted = false

class InGivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => trial.tests.indexOf(a.moduleId) - trial.tests.indexOf(b.moduleId))
  }
}

const replacing = {
  name: 'replaced-module',
  enforce: 'pre' as const,
  load(id: string): string | undefined {
    if (id !== trial.path) return undefined
    isLoaded = true
    return trial.text
  },
}

const reporter: Reporter = {
  onTestCaseResult(test) {
    send({ kind: 'progress' })
    const result = test.result()
    if (result.state !== 'failed') return
    failure ??= {
      kind: 'failed',
      test: test.module.moduleId,
      how: `${test.fullName}: ${firstLine(result.errors[0]?.message)}`,
    }
  },
  onTestModuleEnd(module) {
    const [error] = module.errors()
    if (error)
      failure ??= { kind: 'failed', test: module.moduleId, how: `does not load: ${firstLine(error.message)}` }
    if (module.state() === 'passed') {
      send({ kind: 'took', test: module.moduleId, milliseconds: module.diagnostic().duration })
    }
  },
  onTestRunEnd(modules, errors, reason) {
    isInterrupted ||= reason === 'interrupted'
    const [error] = errors
    const test = modules[0]?.moduleId ?? ''
    if (error) failure ??= { kind: 'failed', test, how: `outside of any test: ${firstLine(error.message)}` }
  },
}

function firstLine(message = ''): string {
  return message.split('\n')[0] ?? ''
}

function vitestWith(isolate: boolean): Promise<Vitest> {
  return createVitest(
    'test',
    {
      config: false,
      root,
      watch: false,
      include: [...allTests],
      isolate,
      maxWorkers: 1,
      bail: 1,
      // What an earlier trial made of a module is not the module.
      fsModuleCache: false,
      testTimeout: 30_000,
      hookTimeout: 30_000,
      silent: true,
      reporters: [reporter],
      sequence: { sequencer: InGivenOrder },
      env: trialEnvironment(),
    },
    { server: { watch: null }, plugins: [replacing] },
  )
}

const running = new Map<boolean, Promise<Vitest>>()

function vitestFor(isolate: boolean): Promise<Vitest> {
  const known = running.get(isolate) ?? vitestWith(isolate)
  running.set(isolate, known)
  return known
}

/** Vitest may end a run for a test that has failed, and lose the report of it: then nothing is known, and it runs again. */
async function run(next: Trial): Promise<Outcome> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const outcome = await attempted(next)
    if (outcome.kind !== 'passed' || !isInterrupted) return outcome
  }
  throw new Error(`The tests of a trial were interrupted ${maxAttempts} times, and none of them failed.`)
}

const maxAttempts = 5

async function attempted(next: Trial): Promise<Outcome> {
  trial = next
  isLoaded = false
  isInterrupted = false
  failure = undefined
  const isShared = (test: string): boolean => sharesProcess(relative(root, test))
  await runEach(trial.tests.filter(isShared), false)
  if (!failure)
    await runEach(
      trial.tests.filter((test) => !isShared(test)),
      true,
    )
  return failure ?? { kind: 'passed', isLoaded }
}

async function runEach(tests: readonly string[], isolate: boolean): Promise<void> {
  if (tests.length === 0) return
  const vitest = await vitestFor(isolate)
  if (trial.path !== undefined) vitest.invalidateFile(trial.path)
  await vitest.runTestSpecifications(tests.map((test) => vitest.getRootProject().createSpecification(test)))
  if (trial.path !== undefined) vitest.invalidateFile(trial.path)
}

process.on('message', (next: Trial) => {
  void run(next).then(
    (outcome) => send({ kind: 'ended', outcome }),
    (error: unknown) => {
      throw error
    },
  )
})
// Without the process that asks there is nothing left to try. A worker in an endless loop would outlive its parent, so
// the whole group ends, which this process leads.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))
send({ kind: 'ready' })
