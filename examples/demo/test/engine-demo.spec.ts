import { expect, it } from 'vitest'
import { runDemo } from './program.ts'

it('drives the demo by two workers on pg-boss, one of which is killed, and places the order once', async ({
  skip,
}) => {
  const { code, stdout, stderr } = await runDemo(['--engine', 'pg-boss', '--yes'])
  if (stderr.includes('This demo needs Postgres')) skip(stderr)
  const told = stdout + stderr
  const [, killed] = /kill -9 (\d+)/.exec(told) ?? []
  const takers = [...told.matchAll(/process (\d+) takes the run/g)].map(([, pid]) => pid)
  expect(takers[0]).toBe(killed)
  expect(new Set(takers.slice(1))).toEqual(new Set([takers.at(-1)]))
  expect(takers.at(-1)).not.toBe(killed)
  expect(told).toContain('Orders placed: 1.')
  expect(code).toBe(0)
})

it('says what it needs where nobody is there to decide', async () => {
  const { code, stderr } = await runDemo(['--engine', 'pg-boss'])
  expect(stderr).toContain('error: Nobody is there to decide')
  expect(code).not.toBe(0)
})
