// The same tests of one agent in vitest, in node:test and in jest, and the matchers of the README: each runner in a process of its
// own, as users start it.
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { install, makeFolder } from '../../../scripts/pages/reader-folder.ts'

const run = promisify(execFile)
const { TALLYSTICK_EFFORT: _effort, VITEST: _vitest, NODE_OPTIONS: _options, ...env } = process.env
const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8')
let folder = ''

beforeAll(() => {
  folder = makeFolder()
  install(folder, ['@tallystick/core', '@tallystick/testkit', 'fast-check', 'rxjs'])
  install(folder, ['vitest', 'jest', '@jest/globals'])
  cpSync(join(import.meta.dirname, 'runners'), folder, { recursive: true })
  const [, matchers = ''] = /```ts vitest\n(.*?)```/s.exec(readme) ?? []
  const shared = readFileSync(join(folder, 'support.node.ts'), 'utf8')
  for (const [runner, source] of [
    ['vitest', 'vitest'],
    ['jest', '@jest/globals'],
  ] as const) {
    const translate = (text: string): string =>
      text
        .replace(/from '(?:node:test|vitest)'/, `from '${source}'`)
        .replace("'@tallystick/testkit/vitest'", `'@tallystick/testkit/${runner}'`)
    writeFileSync(join(folder, `support.${runner}.ts`), translate(shared))
    writeFileSync(join(folder, `matchers.${runner}.ts`), translate(matchers))
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs a command in the folder; returns all that it prints. */
async function play(words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, words, { cwd: folder, env }).catch(
    (error: Error) => {
      throw new Error(`${error.message}\n${(error as { stdout?: string }).stdout ?? ''}`)
    },
  )
  return `${stdout}\n${stderr}`
}

it('works in node:test', async () => {
  expect(await play(['--test', '--test-reporter=tap', 'support.node.ts'])).toMatch(/# pass 13\n# fail 0/)
})

it('works in vitest', async () => {
  expect(await play(['node_modules/vitest/vitest.mjs', 'run', '--no-color', '--testTimeout=120000'])).toMatch(
    /Tests +14 passed/,
  )
})

it('works in jest', async () => {
  const words = [
    '--experimental-vm-modules',
    '--no-warnings',
    'node_modules/jest/bin/jest.js',
    '--ci',
    '--testTimeout=120000',
  ]
  expect(await play(words)).toMatch(/Tests: +14 passed/)
})
