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
  it('may have comments, and commas at the ends of lists', () => {
    const text =
      '// Who may what\n{ "version": 1, "rules": [{ "tool": "look", "decision": "allow" }, /* last */ ], }'
    expect(readApprovalRules(fileWith(text))).toEqual(rules)
  })

  it('is read, also where an editor put a byte order mark in front', () => {
    expect(readApprovalRules(fileWith(JSON.stringify(rules)))).toEqual(rules)
    expect(readApprovalRules(fileWith(`\uFEFF${JSON.stringify(rules)}`))).toEqual(rules)
  })

  it.each([
    [
      '{\n"version": 1,\n  ]',
      /rules\.json cannot be read as approval rules: It is not JSON at line 3, column 3 \(\w+\)\./,
    ],
    ['['.repeat(100_000), /It is nested too deeply\. Name a JSON file/],
    ['', /It is not JSON at line 1, column 1/],
    [
      '{"version":1,"rules":[{"decision":"allow","input":{"__proto__":{}}}]}',
      /rules\[0\]\.input\.__proto__ states nothing/,
    ],
    ['[]', /The approval rules of .*rules\.json: what it was given is a list; expected an object/],
    ['{"version":1,"rules":[{"decision":"maybe"}]}', /rules\.json: rules\[0\]\.decision is 'maybe'/],
    [' '.repeat(1024 * 1024 + 1), /it has 1048577 bytes/],
  ])('that holds none is refused by its name: %#', (text, message) => {
    const path = fileWith(text)
    expect(() => readApprovalRules(path)).toThrow(ConfigurationError)
    expect(() => readApprovalRules(path)).toThrow(message)
  })

  it('may have a mebibyte', () => {
    const text = JSON.stringify(rules)
    expect(readApprovalRules(fileWith(text.padEnd(1024 * 1024)))).toEqual(rules)
  })

  it('that is missing, or a folder, is refused by its name', () => {
    expect(() => readApprovalRules('/nowhere/rules.json')).toThrow(
      /\/nowhere\/rules\.json cannot be read.*ENOENT/,
    )
    expect(() => readApprovalRules(tmpdir())).toThrow(/cannot be read as approval rules.*EISDIR/)
  })
})
