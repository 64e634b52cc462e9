/** The number an id is, where ids count up; null for any other text. */
export function numberOfId(id: string): number | null {
  return /^(0|[1-9]\d{0,14})$/.test(id) ? Number(id) : null;
}
