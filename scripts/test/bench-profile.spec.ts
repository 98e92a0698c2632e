import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import { profileMetered, lastProfile } from '../../bench/cases/meter.ts'
import { timesByPlace } from '../../bench/cases/profile-places.ts'
import { start } from '../../bench/cases/started-process.ts'

/** A folder for the files of one test. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'bench-profile-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const samplingUs = 250

/** A profile in which each of these functions calls the next one and then runs for a millisecond, in four samples. */
function profileOf(frames: readonly (readonly [functionName: string, url: string, line?: number])[]) {
  const nodes = frames.map(([functionName, url, lineNumber = 7], index) => ({
    id: index + 1,
    callFrame: { functionName, url, lineNumber, columnNumber: lineNumber === 0 ? 0 : 2, scriptId: '1' },
    ...(index + 1 < frames.length && { children: [index + 2] }),
  }))
  const samples = nodes.flatMap(({ id }) => Array.from({ length: 4 }, () => id))
  return { nodes, samples, timeDeltas: samples.map(() => samplingUs), startTime: 0, endTime: 1 }
}

it('tells the time of Node by what it does, and that of modules by their folder or package', () => {
  const times = timesByPlace(
    profileOf([
      ['(root)', ''],
      ['bootstrap', 'node:internal/bootstrap/node'],
      ['link', 'node:internal/modules/esm/module_job'],
      ['readFileSync', 'node:fs'],
      ['', 'file:///r/packages/core/src/machine/evolve.ts', 0],
      ['evolve', 'file:///r/packages/core/src/machine/evolve.ts'],
      ['hash', 'node:internal/crypto/hash'],
      ['compileForInternalLoader', 'node:internal/bootstrap/realm'],
      ['', 'node:net'],
      ['parse', 'file:///r/node_modules/.pnpm/zod@4/node_modules/zod/parse.js'],
      ['slice', ''],
      ['(garbage collector)', ''],
      ['(idle)', ''],
    ]),
    samplingUs,
  )
  expect(times).toEqual({
    V8: 1,
    'the start of Node': 1,
    'loading modules': 3,
    'core/machine/fold': 1,
    Node: 1,
    'loading modules of Node': 2,
    zod: 2,
    'garbage collector': 1,
  })
})

it('takes the folder of a module from the source map of the file that it was laid into', () => {
  const lib = join(temporaryFolder(), 'packed/ledger/lib')
  mkdirSync(lib, { recursive: true })
  const file = join(lib, 'index.js')
  // The eighth line is from the second source.
  const map = {
    version: 3,
    sources: ['../src/a.ts', '../src/read/find.ts'],
    names: [],
    mappings: 'AAAA;;;;;;;ACAA',
  }
  writeFileSync(`${file}.map`, JSON.stringify(map))
  const profile = profileOf([['find', pathToFileURL(file).href]])
  expect(timesByPlace(profile, samplingUs)).toEqual({ 'ledger/read': 1 })
})

it('leaves out the time in which other processes ran', () => {
  const profile = profileOf([['find', 'file:///r/packages/ledger/src/read/find.ts']])
  const timeDeltas = profile.timeDeltas.map((took, index) => (index === 0 ? 1_000_000 : took))
  // A sample stands for five times the interval at most.
  expect(timesByPlace({ ...profile, timeDeltas }, samplingUs)).toEqual({ 'ledger/read': 2 })
})

it('profiles a process that a case starts, and removes its files', async () => {
  const folder = temporaryFolder()
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  profileMetered()
  await start(['--input-type=module', '-e', 'import "node:net"'])
  expect(lastProfile()).toHaveProperty('loading modules of Node')
  expect(readdirSync(folder).filter((name) => name.startsWith('tallystick-profile'))).toEqual([])
})
