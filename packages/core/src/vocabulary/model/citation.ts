/** A source: an address, or a document. Fields that the provider did not report are absent. */
export interface Source {
  readonly url?: string
  readonly title?: string
  /** The id under which the provider keeps the document. */
  readonly fileId?: string
}

/** A source that supports a text, as the provider reports it. */
export interface Citation extends Source {
  /** The words of the source that support the text. */
  readonly quote?: string
  /** Pages of the source, from 1, the last included. */
  readonly pages?: { readonly from: number; readonly to: number }
  /** The part of the text that it supports, in characters from 0, the end not included. Absent: the whole text. */
  readonly place?: { readonly from: number; readonly to: number }
}
