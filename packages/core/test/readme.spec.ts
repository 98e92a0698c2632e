import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type AgentOptions, type RunResult } from '@tallystick/core'
import { limitNames } from '@tallystick/core/vocabulary'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

const examples = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, example = '']) => example)
const printed = ['done answered Hello.\n', '4\nAt ten. 3\n']

it.each(printed.map((output, index) => [examples[index] ?? '', output] as const))(
  'an example in the README runs unchanged: %#',
  (example, output) => {
    const cwd = fileURLToPath(new URL('..', import.meta.url))
    const words = ['--no-warnings', '--input-type=module-typescript', '--eval', example]
    expect(execFileSync(process.execPath, words, { cwd, encoding: 'utf8' })).toBe(output)
  },
)

it('no example in the README is left out', () => {
  expect(examples).toHaveLength(printed.length)
})

it('the README names every part of an agent that a run can begin with', () => {
  const parts: readonly (keyof AgentOptions)[] = [
    'handoffs',
    'guardrails',
    'output',
    'compaction',
    'timeouts',
  ]
  expect(parts.filter((part) => !readme.includes(`\`${part}`))).toEqual([])
})

it('the README names every limit', () => {
  expect(limitNames.filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
})

it('docs/run-options.md names every field of a result, and no other', () => {
  // The compiler wants each of them here.
  const fields: { readonly [Name in keyof Required<RunResult>]: true } = {
    ...{ runId: true, status: true, reason: true, limit: true, detail: true, failure: true, agent: true },
    ...{ text: true, output: true, usage: true, costUsd: true, turns: true, toolCalls: true, children: true },
    ...{
      pendingApprovals: true,
      deferredCalls: true,
      wakeAt: true,
      seq: true,
      messages: true,
      providerState: true,
    },
    toInput: true,
  }
  const page = readFileSync(new URL('../../../docs/run-options.md', import.meta.url), 'utf8')
  const section = /^## The result\n(.*?)^## /ms.exec(page)?.[1] ?? ''
  const named = [...section.matchAll(/^\| `(\w+)/gm)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(Object.keys(fields)))
})
