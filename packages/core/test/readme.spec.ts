import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { limitNames } from '@tallystick/core'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

it('the example in the README runs as it stands', () => {
  const [, example = ''] = /```ts\n(.*?)```/s.exec(readme) ?? []
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const words = ['--no-warnings', '--input-type=module-typescript', '--eval', example]
  expect(execFileSync(process.execPath, words, { cwd, encoding: 'utf8' })).toBe('done answered Hello.\n')
})

it('the README names every limit', () => {
  expect(limitNames.filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
})
