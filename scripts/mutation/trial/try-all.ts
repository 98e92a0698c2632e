import { join, relative } from 'node:path'
import { testersOf } from '../area.ts'
import type { Memory } from '../memory.ts'
import { type Mutant, mutatedText } from '../mutant.ts'
import type { TestsOf } from '../reaching-tests.ts'
import type { Verdict } from '../verdict.ts'
import { Compiler } from './compiler.ts'
import type { Outcome } from './message.ts'
import { Tester } from './tester.ts'

/** What trying mutants needs. */
export interface Ground {
  readonly root: string
  /** How many mutants are tried at the same time. */
  readonly workers: number
  readonly memory: Memory
  readonly testsOf: TestsOf
  readonly sourceOf: (path: string) => string
  readonly show: (mutant: Mutant) => string
  /** Whether mutants that a test has noticed are printed as well. */
  readonly isVerbose: boolean
}

/**
 * Tries every mutant, and prints what survives as soon as it is known. A test file that noticed a fault and fails without
 * one, too, proves nothing: it is named, and what it noticed is tried again without it.
 */
export async function tryAll(mutants: readonly Mutant[], ground: Ground): Promise<readonly Verdict[]> {
  const { root, workers, memory } = ground
  const compiler = new Compiler(root)
  const testers = Array.from({ length: workers }, () => {
    return new Tester((test, milliseconds) => memory.addMilliseconds(relative(root, test), milliseconds))
  })
  const verdicts = new Map<Mutant, Verdict>()
  const failing = new Set<string>()
  const testsOf: TestsOf = (...place) => ground.testsOf(...place).filter((test) => !failing.has(test))
  const tryEach = async (some: readonly Mutant[]): Promise<void> => {
    const next = some.values()
    const work = async (tester: Tester): Promise<void> => {
      for (const mutant of next) {
        const verdict = await verdictOf(mutant, tester, compiler, { ...ground, testsOf })
        verdicts.set(mutant, verdict)
        report(verdict, verdicts.size, mutants.length, ground)
      }
    }
    await Promise.all(testers.map(work))
  }
  const noticedIn = (tests: ReadonlySet<string>): readonly Mutant[] =>
    mutants.filter((mutant) => tests.has(verdicts.get(mutant)?.test ?? ''))
  try {
    const sound = new Set<string>()
    for (let left = mutants; left.length > 0; left = noticedIn(failing)) {
      await tryEach(left)
      const noticing = new Set([...verdicts.values()].flatMap(({ test }) => test ?? []))
      for (const { test, how } of await failingOf([...noticing.difference(sound)], testers[0], root)) {
        console.log(`${test} fails without any fault, so it proves nothing: ${how}`)
        failing.add(test)
      }
      for (const test of noticing.difference(failing)) sound.add(test)
    }
  } finally {
    for (const tester of testers) tester.close()
    compiler.close()
  }
  return [...verdicts.values()]
}

/** How many test files run before the compiler is asked: most mutants are noticed by then. */
const firstTests = 12

async function verdictOf(
  mutant: Mutant,
  tester: Tester,
  compiler: Compiler,
  ground: Ground,
): Promise<Verdict> {
  const { root, sourceOf } = ground
  const { path } = mutant
  const text = mutatedText(sourceOf(path), mutant)
  const [, name = ''] = path.split('/')
  const [tests = [], ...further] = testersOf(name).map((tester) =>
    ground.testsOf(tester, path, mutant.edit.start),
  )
  let isLoaded = false
  let isCompiled = false
  for (const some of [tests.slice(0, firstTests), tests.slice(firstTests), ...further]) {
    if (some.length > 0) {
      const absolute = some.map((test) => join(root, test))
      const outcome = await tester.run({ tests: absolute, path: join(root, path), text })
      if (outcome.kind !== 'passed') return noticedBy(mutant, outcome, ground)
      isLoaded ||= outcome.isLoaded
    }
    if (!(isCompiled ||= compiler.accepts(path, text)))
      return { mutant, kind: 'refused', how: 'the compiler refuses it' }
  }
  const nearest = tests.slice(0, 3).join(', ')
  const count = [tests, ...further].flat().length
  const how = isLoaded ? `${count} test files pass, among them ${nearest}` : 'no test calls it'
  return { mutant, kind: 'survived', how }
}

function noticedBy(mutant: Mutant, outcome: Exclude<Outcome, { kind: 'passed' }>, ground: Ground): Verdict {
  if (outcome.kind === 'hung') return { mutant, kind: 'hung', how: outcome.how }
  const test = relative(ground.root, outcome.test)
  ground.memory.addNoticed(mutant.path, test)
  return { mutant, kind: 'killed', how: `${test}: ${outcome.how}`, test }
}

function report(
  { mutant, kind, how }: Verdict,
  done: number,
  count: number,
  { show, isVerbose }: Ground,
): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${done} of ${count}`)
  if (!isVerbose && (kind === 'killed' || kind === 'refused')) return
  if (process.stdout.isTTY) process.stdout.write('\r\u001B[K')
  console.log(`${kind}  ${show(mutant)}\n    ${how}`)
}

/** Runs tests without any fault, and returns those that fail. A trial ends at its first failure, and is repeated without it. */
async function failingOf(
  tests: readonly string[],
  tester: Tester | undefined,
  root: string,
): Promise<readonly { readonly test: string; readonly how: string }[]> {
  const failing = new Map<string, string>()
  for (const group of Map.groupBy(tests, (test) => test.split('/')[1]).values()) {
    for (let isOver = false; !isOver;) {
      const left = group.filter((test) => !failing.has(test))
      const outcome =
        left.length > 0 ? await tester?.run({ tests: left.map((test) => join(root, test)) }) : undefined
      if (outcome?.kind === 'failed') failing.set(relative(root, outcome.test), outcome.how)
      isOver = outcome?.kind !== 'failed'
    }
  }
  return [...failing].map(([test, how]) => ({ test, how }))
}
