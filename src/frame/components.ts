/** A piece of code for the component `code`; its name is that of its language or file. */
export interface Sample {
  name: string;
  language: "bash" | "javascript" | "json" | "python";
  text: string;
}
