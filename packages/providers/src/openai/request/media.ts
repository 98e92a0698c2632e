import { bareType, decodedText } from '../../shared/request/file-data.ts'
import type {
  FilePart,
  ImageDetail,
  ImagePart,
  Outcome,
  ResultPart,
  UserPart,
} from '@tallystick/core/vocabulary'
import { keptFileId, leftOutText } from '../../shared/request/left-out.ts'

/** What a part comes to on these wires, before each says it in its own words. */
export type Carried =
  | { readonly kind: 'text'; readonly text: string }
  /** An image: its address, or its bytes as a data URL. */
  | { readonly kind: 'image'; readonly url: string; readonly detail: ImageDetail | undefined }
  /** A PDF: its address, or its bytes as a data URL. */
  | { readonly kind: 'pdf'; readonly name: string; readonly url?: string; readonly data?: string }
  /** A sound, as base64. */
  | { readonly kind: 'audio'; readonly format: 'wav' | 'mp3'; readonly data: string }
  /** What the service keeps under an id. */
  | {
      readonly kind: 'kept'
      readonly what: 'image' | 'file'
      readonly fileId: string
      readonly detail: ImageDetail | undefined
    }

/** What a wire of a service takes. */
export interface Carrier {
  /** Whose service it is: files that another one keeps cannot be named to it. */
  readonly provider: string
  /** Whether documents may be named by their addresses. */
  readonly documentUrls: boolean
  /** Whether images may be named by the ids under which the service keeps them. */
  readonly imageIds: boolean
  readonly audio: boolean
}

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const audioFormats: ReadonlyMap<string, 'wav' | 'mp3'> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
])
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)$)/

/** What a user wrote, or a tool answered. Text that holds nothing is left out; a part that no wire carries is described. */
export function carried(parts: readonly (UserPart | ResultPart)[], carrier: Carrier): Carried[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return words(part.text)
      case 'image':
        return [imageOf(part, carrier) ?? leftOut(part)]
      case 'file':
        return [fileOf(part, carrier) ?? leftOut(part)]
    }
  })
}

function words(text: string): Carried[] {
  return text.trim() === '' ? [] : [{ kind: 'text', text: text.toWellFormed() }]
}

function imageOf(part: ImagePart, { provider, imageIds }: Carrier): Carried | undefined {
  const { mediaType, data, url, detail } = part
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return imageIds ? { kind: 'kept', what: 'image', fileId, detail } : undefined
  if (url !== undefined) return { kind: 'image', url, detail }
  const type = bareType(mediaType) === 'image/jpg' ? 'image/jpeg' : bareType(mediaType)
  if (!data || !imageTypes.has(type)) return undefined
  return { kind: 'image', url: `data:${type};base64,${data}`, detail }
}

function fileOf(part: FilePart, carrier: Carrier): Carried | undefined {
  const fileId = keptFileId(part, carrier.provider)
  if (fileId !== undefined) return { kind: 'kept', what: 'file', fileId, detail: undefined }
  const type = bareType(part.mediaType)
  if (type === 'application/pdf') return pdfOf(part, carrier)
  const format = audioFormats.get(type)
  if (format && part.data && carrier.audio) return { kind: 'audio', format, data: part.data }
  return textTypes.test(type) ? textOfFile(part) : undefined
}

function pdfOf({ name: given, data, url }: FilePart, { documentUrls }: Carrier): Carried | undefined {
  const name = given?.toWellFormed() || 'document.pdf'
  if (data) return { kind: 'pdf', name, data: `data:application/pdf;base64,${data}` }
  return url !== undefined && documentUrls ? { kind: 'pdf', name, url } : undefined
}

function textOfFile({ name, data }: FilePart): Carried | undefined {
  const text = data ? decodedText(data) : ''
  if (text.trim() === '') return undefined
  return { kind: 'text', text: `${name ? `File "${name.toWellFormed()}"` : 'A file'}:\n\n${text}` }
}

function leftOut(part: ImagePart | FilePart): Carried {
  return { kind: 'text', text: leftOutText(part) }
}

/** What a tool answered. These wires have no mark for errors, so an error says in words that it is one. */
export function carriedResult(outcome: Outcome, content: readonly ResultPart[], carrier: Carrier): Carried[] {
  const parts = carried(content, carrier)
  if (outcome === 'success') return parts
  if (parts.length === 0) return words(`The call ended as ${outcome}, without output.`)
  const [first, ...rest] = parts
  return first?.kind === 'text'
    ? [{ kind: 'text', text: `Error (${outcome}): ${first.text}` }, ...rest]
    : [{ kind: 'text', text: `Error (${outcome}):` }, ...parts]
}
