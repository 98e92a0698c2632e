import type { ReconcileAnswer, ReconcileContext } from '../../../definition/tool-specification.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { type Place, statsOf, withPlace } from '../root/place.ts'
import { placesOf } from '../text/places-of.ts'
import { type EditFileInput, findText } from './edit-file.ts'
import { type FolderRules, textAt } from './folder-rules.ts'
import type { MoveFileInput } from './move-file.ts'
import { leftBy } from './put-file.ts'
import type { WriteFileInput } from './write-file.ts'

/** The key of the call in doubt. */
type Doubt = Pick<ReconcileContext, 'idempotencyKey'>

const never = new AbortController().signal

/**
 * Whether a write took place. A file with that text says yes. The text in a file beside it, which had not taken the name yet, says
 * no. Another text, or no file, says neither: another process may have changed what was written.
 */
export async function reconciledWrite(
  rules: FolderRules,
  { path, content }: WriteFileInput,
  doubt: Doubt,
): Promise<ReconcileAnswer> {
  const found = await textNow(rules, path)
  if (found?.text === content) {
    return {
      happened: true,
      result: `${found.shown} holds exactly this text. A look after a crash found it.`,
    }
  }
  return await answerOfLeft(rules, path, doubt)
}

/**
 * Whether an edit took place. The edited text in a file beside it says no, and so does an occurrence of oldText that no edit can
 * have left there. An oldText that is gone says nothing: it may never have been there.
 */
export async function reconciledEdit(
  rules: FolderRules,
  input: EditFileInput,
  doubt: Doubt,
): Promise<ReconcileAnswer> {
  const found = await textNow(rules, input.path)
  const { text = '' } = found ?? {}
  const { ranges, newTextFor } = await findText(text, input, never)
  const isUntouched = ranges.some(
    (range) =>
      !mayBeLeft(range.start, text, {
        oldText: text.slice(range.start, range.end),
        newText: newTextFor(range),
      }),
  )
  return isUntouched ? { happened: false } : await answerOfLeft(rules, input.path, doubt)
}

/**
 * Whether a move took place. A file or folder that is at its old path, while the new one is free, was not moved; where it is
 * missing at the old path, it may never have been there.
 */
export async function reconciledMove(
  rules: FolderRules,
  { from, to }: MoveFileInput,
): Promise<ReconcileAnswer> {
  const [source, target] = [await isThere(rules, from), await isThere(rules, to)]
  return source && !target ? { happened: false } : 'unknown'
}

/**
 * Whether an edit may have left this occurrence of oldText: it reaches into a newText, as `ab` does in `aabb` without its `ab`,
 * or in what `ab` became by `ab` → `abab`.
 */
function mayBeLeft(
  place: number,
  text: string,
  { oldText, newText }: Pick<EditFileInput, 'oldText' | 'newText'>,
): boolean {
  if (newText === '') return oldText.length > 1
  const around = text.slice(
    Math.max(0, place - newText.length + 1),
    place + oldText.length + newText.length - 1,
  )
  return placesOf(newText, around).length > 0
}

interface Found {
  readonly text: string
  readonly shown: string
}

/** The text of a file now; `undefined` where these tools read no file. */
async function textNow(rules: FolderRules, path: string): Promise<Found | undefined> {
  return await found(rules, partsOf(path), async (place) => {
    const { text, path: names } = await textAt(rules, place, never)
    return { text, shown: quoted(pathText(names)) }
  })
}

/** A text that the call had written beside the file: it takes the name of the file as the last step. */
async function answerOfLeft(
  rules: FolderRules,
  path: string,
  { idempotencyKey }: Doubt,
): Promise<ReconcileAnswer> {
  const parts = partsOf(path)
  const beside = async ({ folder }: Place): Promise<boolean> =>
    (await leftBy(folder, idempotencyKey)).length > 0
  const isLeft = (await found(rules, parts, beside)) ?? (await found(rules, parts.slice(0, -1), beside))
  return isLeft === true ? { happened: false } : 'unknown'
}

async function isThere(rules: FolderRules, path: string): Promise<boolean> {
  const parts = partsOf(path)
  const entry = async ({ folder, name: notFolder }: Place): Promise<boolean> =>
    notFolder === undefined && (await statsOf(folder.at(parts.at(-1) ?? '.'))) !== undefined
  return (await found(rules, parts.slice(0, -1), entry)) ?? false
}

/** What is found at a place; `undefined` where nothing is, or nothing that these tools show. */
async function found<Result>(
  { root }: FolderRules,
  parts: readonly string[],
  look: (place: Place) => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await withPlace(root, parts, {}, look)
  } catch (error) {
    if (error instanceof ToolError) return undefined
    throw error
  }
}
