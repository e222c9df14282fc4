// Styles that the reference adds to those of reports, and its search box.

#ifndef CLEAVE_TOOLS_REFERENCE_REFERENCE_STYLE_H_
#define CLEAVE_TOOLS_REFERENCE_REFERENCE_STYLE_H_

namespace cleave {

// Neither `<` nor `&` is in these: the pages are XML, too.
inline constexpr char kReferenceStyle[] = R"css(
.formula {
  margin: 0.75rem 0; padding: 0.6rem 0.9rem; overflow-x: auto;
  border-left: 4px solid var(--line); font-size: 1.1rem;
}
.formula math {
  margin: 0.45rem 0; width: fit-content;
  font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", math;
}
.plot .axis { stroke: var(--muted); stroke-width: 1; }
.plot .value { fill: none; stroke: var(--errors); stroke-width: 2.5; }
.plot .slope {
  fill: none; stroke: var(--bad); stroke-width: 1.75; stroke-dasharray: 7 5;
}
.ops { list-style: none; margin: 0.5rem 0; padding: 0; columns: 24rem; }
.ops li { padding: 0.15rem 0; break-inside: avoid; }
.search { margin: 1.25rem 0; display: flex; gap: 0.75rem; flex-wrap: wrap; }
.search label {
  display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center;
  width: 30rem; max-width: 100%;
}
.search input {
  font: inherit; padding: 0.45rem 0.7rem; flex: 1 1 12rem; min-width: 0;
  color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px;
}
.search output { color: var(--muted); align-self: center; }
[hidden] { display: none; }
article:target { border-color: var(--link); }
)css";

// Hidden until the script that it needs shows it.
inline constexpr char kSearchBox[] = R"html(<form class="search" role="search"
 hidden="hidden" onsubmit="return false">
<label>Search <input type="search" name="q" autocomplete="off"/></label>
<output></output>
</form>
)html";

// Shows the ops that have all words of the query in their name or comment,
// and keeps the query in the address, so that it can be shared.
inline constexpr char kSearchScript[] = R"html(<script>
const form = document.querySelector(".search");
const input = form.querySelector("input");
const count = form.querySelector("output");
const sections = [...document.querySelectorAll("section")].map(section => ({
  section,
  entries: [...section.querySelectorAll("li")].map(
      entry => ({entry, text: entry.textContent.toLowerCase()})),
}));
const search = () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const {section, entries} of sections) {
    let any = false;
    for (const {entry, text} of entries) {
      const has = words.every(word => text.includes(word));
      entry.hidden = !has;
      any = any || has;
      found += has ? 1 : 0;
    }
    section.hidden = !any;
  }
  count.textContent = words.length ? found + " found" : "";
  history.replaceState(null, "", "#" + encodeURIComponent(input.value));
};
form.hidden = false;
input.value = decodeURIComponent(location.hash.slice(1));
input.addEventListener("input", search);
if (input.value) search();
</script>
)html";

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_REFERENCE_STYLE_H_
