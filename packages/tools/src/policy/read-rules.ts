import { readFileSync, statSync } from 'node:fs'
import { ConfigurationError } from '@tallystick/core'
import { sentenceOfError } from '@tallystick/core/kit'
import { jsonWithComments } from '../content/json-with-comments.ts'
import type { ApprovalRules } from './rules.ts'
import { requireRules } from './rules-check.ts'

const maxBytes = 1024 * 1024

/**
 * Reads rules from a JSON file, which may have comments and commas at the ends of lists. Throws a `ConfigurationError` that
 * names the file: it is missing, too large (1 MiB at most), no JSON, or does not hold rules.
 */
export function readApprovalRules(path: string): ApprovalRules {
  const given = parsed(textOf(path), path)
  requireRules(given, `The approval rules of ${path}`)
  return given
}

function textOf(path: string): string {
  try {
    const { size } = statSync(path)
    if (size > maxBytes) throw new Error(`it has ${size} bytes, and rules have at most ${maxBytes}`)
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

function parsed(text: string, path: string): unknown {
  const read = jsonWithComments(text)
  if ('fault' in read) throw unreadable(path, read.fault)
  return read.value
}

function unreadable(path: string, cause: unknown): ConfigurationError {
  return new ConfigurationError(
    `The file ${path} cannot be read as approval rules: ${sentenceOfError(cause)} Name a JSON file with version, rules and, where ` +
      'wanted, otherwise and examples.',
    { cause },
  )
}
