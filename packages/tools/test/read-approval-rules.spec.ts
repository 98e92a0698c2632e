import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { readApprovalRules } from '@tallystick/tools/policy'
import { describe, expect, it, onTestFinished } from 'vitest'

function fileWith(text: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'rules-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'rules.json')
  writeFileSync(path, text)
  return path
}

const rules = { version: 1, rules: [{ tool: 'look', decision: 'allow' }] }

describe('a file of approval rules', () => {
  it('is read, also where an editor put a byte order mark in front', () => {
    expect(readApprovalRules(fileWith(JSON.stringify(rules)))).toEqual(rules)
    expect(readApprovalRules(fileWith(`\uFEFF${JSON.stringify(rules)}`))).toEqual(rules)
  })

  it.each([
    ['{', /rules\.json cannot be read as approval rules: .*JSON/],
    ['[]', /The approval rules of .*rules\.json: what it was given is a list; expected an object/],
    ['{"version":1,"rules":[{"decision":"maybe"}]}', /rules\.json: rules\[0\]\.decision is 'maybe'/],
    [' '.repeat(1024 * 1024 + 1), /it has 1048577 bytes/],
  ])('that holds none is refused by its name: %#', (text, message) => {
    const path = fileWith(text)
    expect(() => readApprovalRules(path)).toThrow(ConfigurationError)
    expect(() => readApprovalRules(path)).toThrow(message)
  })

  it('that is missing, or a folder, is refused by its name', () => {
    expect(() => readApprovalRules('/nowhere/rules.json')).toThrow(
      /\/nowhere\/rules\.json cannot be read.*ENOENT/,
    )
    expect(() => readApprovalRules(tmpdir())).toThrow(/cannot be read as approval rules.*EISDIR/)
  })
})
