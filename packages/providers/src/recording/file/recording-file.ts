import { isJsonObject } from '@tallystick/core/kit'
import { accessSync, appendFileSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { type JsonObject } from '@tallystick/core/vocabulary'
import { numberAt, textAt } from '../../shared/json/json-reading.ts'

/** What a recording holds: exchanges over HTTP with their bytes, or calls of a model with their signals. */
export type RecordingKind = 'exchanges' | 'calls'

const version = 1

/** Writes JSON Lines. What was written is in the file, whatever becomes of the process. */
export interface RecordingWriter {
  /** The number of the next exchange or call, from 1: several may be open at once, so each line names its own. */
  next(): number
  write(line: JsonObject): void
}

/**
 * A new recording in `file`. What was there before is replaced when the first line is written, and not sooner.
 *
 * Throws `ConfigurationError` where the file cannot be written.
 */
export function recordingWriter(file: string, kind: RecordingKind): RecordingWriter {
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch (cause) {
    throw new ConfigurationError(
      `The folder of the recording ${file} is not there, or nothing can be written in it. Make the folder first.`,
      { cause },
    )
  }
  let entries = 0
  let begun = false
  return {
    next: () => ++entries,
    write(line) {
      const header = begun ? '' : `${JSON.stringify({ recording: kind, version })}\n`
      const text = `${header}${JSON.stringify(line)}\n`
      if (begun) appendFileSync(file, text)
      else writeFileSync(file, text)
      begun = true
    },
  }
}

/**
 * The lines of a recording, after its first one, which says what it is.
 *
 * Throws `ConfigurationError` where the file is not there, is no recording of this kind, or is damaged.
 */
export function readRecording(file: string, kind: RecordingKind): readonly JsonObject[] {
  const [header, ...lines] = linesOf(file).map((line, place) => parsedLine(file, line, place + 1))
  const found = textAt(header, 'recording')
  const foundVersion = numberAt(header, 'version')
  if (found !== kind || foundVersion !== version) {
    const other = found === undefined ? 'no recording' : `a recording of ${found}, version ${foundVersion}`
    throw new ConfigurationError(
      `${file} is ${other}, so it cannot be played as one of ${kind}, version ${version}. Record it anew, or play it with what wrote it.`,
    )
  }
  return lines
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '')
  } catch (cause) {
    throw new ConfigurationError(`The recording ${file} cannot be read. Record it first.`, { cause })
  }
}

function parsedLine(file: string, line: string, number: number): JsonObject {
  try {
    const value: unknown = JSON.parse(line)
    if (isJsonObject(value)) return value
  } catch {
    // What is wrong is said below; the line itself may hold anything.
  }
  throw new ConfigurationError(
    `Line ${number} of the recording ${file} is no JSON object, so the recording is damaged. Record it anew.`,
  )
}
