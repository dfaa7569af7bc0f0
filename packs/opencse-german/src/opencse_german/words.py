"""Closed classes of German words, and the shapes of the open ones."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COPULAS = _words("ist sind war waren bleibt bleiben blieb blieben")
WERDEN = _words("wird werden wurde wurden")
HABEN = _words("hat haben hatte hatten")
MODALS = _words(
    """kann können konnte konnten muss müssen musste mussten darf dürfen durfte durften soll
    sollen sollte sollten will wollen wollte wollten möchte möchten"""
)
AUXILIARIES = COPULAS | WERDEN | HABEN | MODALS
"""Finite forms in second place, with the rest of the verb at the end of the clause."""
PLURAL_FINITE = _words(
    """sind waren werden wurden haben hatten können konnten müssen mussten dürfen durften sollen
    sollten wollen wollten bleiben blieben"""
)
NON_FINITE = _words("sein haben werden worden können müssen dürfen sollen wollen lassen")
"""Forms that end a verb cluster: "gelöscht werden", "geprüft worden sein"."""

NEGATIVES = _words(
    """nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden niemandem nichts
    nirgends nirgendwo weder kaum selten ohne außer anstatt keinesfalls keineswegs keinerlei"""
)
VAGUE = _words(
    """einige einigen einiger manche manchen mancher viele vielen vieler mehrere mehreren wenige
    wenigen meisten etliche teilweise teils manchmal oft häufig häufige häufigen gelegentlich
    meist meistens normalerweise üblicherweise gewöhnlich überwiegend vereinzelt vielleicht
    möglicherweise eventuell gegebenenfalls etwas einzelne einzelnen zunächst vorerst
    grundsätzlich sondern entweder sowohl beide je desto umso zumindest wenigstens"""
)
"""With these, a sentence and its negation can both be true, or a negation does not fit."""
FOCUS = _words(
    "nur auch sogar noch schon bereits erst mehr lediglich ausschließlich selbst allein bloß ebenfalls ebenso"
)

ARTICLES = _words("der die das den dem des")
INDEFINITE = _words("ein eine einen einem einer eines")
POSSESSIVES = frozenset(
    stem + ending
    for stem in ("mein", "dein", "sein", "ihr", "unser", "unsr", "euer", "eur")
    for ending in ("", "e", "en", "em", "er", "es")
    if stem + ending not in ("eur", "unsr", "unserer", "ihr")
)
DETERMINERS = (
    ARTICLES
    | POSSESSIVES
    | _words(
        """ihr dieser diese dieses diesen diesem jeder jede jedes jeden jedem alle allen aller
        alles jener jene jenes jenen jenem sämtliche sämtlichen sämtlicher solche solchen
        solcher welche beiden"""
    )
)
GENITIVES = _words(
    "des der dieses dieser eines einer aller jedes jeder unseres unserer ihres ihrer seines seiner"
)
PREPOSITIONS = _words(
    """in an auf aus bei mit von zu nach vor über unter durch für gegen um bis seit während wegen
    trotz innerhalb außerhalb binnen zwischen neben hinter gegenüber gemäß laut per pro ab im
    am zum zur beim vom ins ans durchs fürs aufgrund mittels anhand hinsichtlich bezüglich
    einschließlich zuzüglich inklusive samt entlang oberhalb unterhalb mithilfe anstelle
    seitens je"""
)
CONTRACTED = _words("im am zum zur beim vom ins ans durchs fürs")
TIME_PREPOSITIONS = _words("innerhalb nach vor bis seit während binnen ab um am im")
TIME_NOUNS = re.compile(
    r"(?:Tage?s?n?|Werktage?n?|Arbeitstage?n?|Wochen?|Monate?n?|Monats|Jahre?n?|Jahres|Stunden?|Minuten?|Sekunden?|"
    r"Montags?|Dienstags?|Mittwochs?|Donnerstags?|Freitags?|Samstags?|Sonntags?|Wochenende|Wochenenden|Uhr|Beginn|Ende|"
    r"Frist|Zeit|Zeitraum|Nacht|Abend|Morgen|Mittag|Sommer|Winter|Frühling|Herbst|Januar|Februar|März|April|Mai|Juni|"
    r"Juli|August|September|Oktober|November|Dezember|Ablauf|Abschluss|Behandlung|Schwangerschaft|Stillzeit|Installation)"
)
PRONOUNS = _words(
    "ich du er sie es wir ihr man mich dich ihn uns euch mir dir ihm ihnen dies dieses das jeder jemand alle"
)
REFLEXIVE = "sich"
POLITE = _words("Sie Ihnen Ihr Ihre Ihren Ihrem Ihrer Ihres")
UNITS = _words("% € $ mg g kg t ml l cl mm cm m km kWh kw h min s")
SENTENCE_ADVERBS = _words(
    """heute gestern morgen hier dort jetzt nun derzeit zurzeit aktuell momentan dann danach
    anschließend zuvor vorher daher deshalb deswegen dadurch damit dabei dafür dazu außerdem
    zudem jedoch allerdings dennoch trotzdem somit also künftig später bisher seitdem
    inzwischen damals täglich wöchentlich monatlich jährlich tagsüber nachts"""
)
FREQUENCY = _words("bereits schon nie niemals nirgends")
MANNER_ADVERBS = _words(
    """immer überall sofort automatisch gleichzeitig vollständig komplett direkt kostenlos
    regelmäßig gut richtig korrekt dauerhaft schnell sicher manuell einzeln gemeinsam zusammen
    getrennt persönlich schriftlich mündlich telefonisch elektronisch separat rechtzeitig
    pünktlich gründlich sorgfältig unverzüglich umgehend endgültig weiterhin jederzeit
    unbegrenzt zuverlässig lokal zentral öffentlich verschlüsselt ausreichend einfach leicht
    problemlos gesondert zwingend unbedingt wieder"""
)
DEGREE = _words(
    "sehr besonders ganz völlig vollkommen äußerst ziemlich relativ so zu recht absolut extrem wirklich"
)
SUBORDINATORS = _words(
    """wenn falls sobald sofern solange nachdem bevor ehe weil da obwohl während dass damit sodass
    ob wie als wo wobei indem bis seitdem soweit"""
)
CONDITIONS = _words("wenn falls sobald sofern solange nachdem bevor obwohl weil")
"""Conjunctions of clauses that can stand before or after their main clause."""
CONNECTORS = SUBORDINATORS | _words("um ohne aber denn und doch jedoch sondern")
RELATIVE = _words("der die das den dem deren dessen denen welche welcher welches welchen")
COORDINATORS = _words("und oder sowie bzw. beziehungsweise")
PARTICLES = _words(
    """ein aus an ab auf zu vor mit her hin zurück weiter los weg um nach bei fest teil statt frei
    her heraus herunter hoch herein hinaus hinzu zusammen bereit dar durch"""
)
"""Prefixes that a finite verb leaves at the end of its clause."""

ORDINARY = (
    NEGATIVES
    | VAGUE
    | FOCUS
    | DETERMINERS
    | INDEFINITE
    | PREPOSITIONS
    | SENTENCE_ADVERBS
    | DEGREE
    | CONNECTORS
    | COORDINATORS
    | AUXILIARIES
    | PRONOUNS
    | {REFLEXIVE}
)
"""Words of closed classes."""

_NUMBERS = _words(
    """zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
    sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig
    neunzig hundert tausend"""
)
_NUMERAL = re.compile(r"\d+(?:[.,]\d+)*\.?")
_ADJECTIVE = re.compile(r"[a-zäöüß]{2,}(?:e|en|em|er|es)")
_PARTICIPLE = re.compile(
    r"(?:[a-zäöüß]*ge[a-zäöüß]{2,}(?:t|en)"
    r"|(?:[a-zäöüß]{2,4})?(?:be|emp|ent|er|ge|miss|ver|zer|über|unter|wider|hinter|voll|um)[a-zäöüß]{2,}(?:t|en)"
    r"|[a-zäöüß]+iert)"
)
_INFINITIVE = re.compile(r"[a-zäöüß]{2,}(?:en|ern|eln)|tun|sein")
_PREDICATE = re.compile(
    r"[a-zäöüß]{2,}(?:bar|lich|ig|isch|los|sam|haft|frei|pflichtig|fähig|ell|iv|al|ant|ent|fest|dicht)"
)
_FINITE = re.compile(r"[a-zäöüß]+(?:t|te|ten|en|ern|eln)")
STRONG_PAST = _words(
    """kam kamen ging gingen gab gaben stand standen lag lagen fiel fielen begann begannen hielt
    hielten nahm nahmen trat traten fand fanden schloss schlossen galt galten stieg stiegen
    sank sanken ließ ließen enthielt enthielten"""
)


def is_number(word: str) -> bool:
    """Whether a word is a numeral in digits, or a number of two and more in letters."""
    return bool(_NUMERAL.fullmatch(word)) or word.lower() in _NUMBERS


def is_attribute(word: str) -> bool:
    """Whether a word has the form of an adjective before a noun."""
    return bool(_ADJECTIVE.fullmatch(word)) and word not in ORDINARY


def is_participle(word: str) -> bool:
    """Whether a word has the form of a past participle."""
    return bool(_PARTICIPLE.fullmatch(word)) and word not in ORDINARY


def is_infinitive(word: str) -> bool:
    """Whether a word has the form of an infinitive."""
    return word == "sein" or (bool(_INFINITIVE.fullmatch(word)) and word not in ORDINARY)


def is_predicate_form(word: str) -> bool:
    """Whether a word has a suffix of adjectives, and no ending of an attribute."""
    return bool(_PREDICATE.fullmatch(word)) and word not in ORDINARY


def is_full_verb(word: str) -> bool:
    """Whether a word has the form of a finite main verb in the third person."""
    return word in STRONG_PAST or (bool(_FINITE.fullmatch(word)) and word not in ORDINARY)


def is_noun(word: str) -> bool:
    """Return whether a word is written as a noun or a name, with a capital, and is not "Sie"."""
    return word[:1].isupper() and word not in POLITE


_PLURAL = re.compile(
    r"(?:ungen|heiten|keiten|schaften|tionen|täten|eien|ien|nen|ten|gen|len|sen|ren|den|fen|ben|men|ken|zen|hen|eln)"
)
_SINGULAR_EN = re.compile(
    r"(?:.*(?:haben|fahren|schreiben|unternehmen|vermögen|volumen|rahmen|namen|examen|zeichen|wesen|leben|essen|treffen|"
    r"rechnen|laden|boden|faden|schaden|hafen|wagen|magen|regen|kuchen|brunnen|garten|rücken|ofen|kosten|guthaben|"
    r"vorgehen|verhalten|interesse|eisen|ansehen|versprechen|abkommen|einkommen|aufkommen|zeichen|mädchen|zimmer|"
    r"augen|daten|nutzen|schatten|husten|morgen|süden|norden|westen|osten|einvernehmen|vertrauen|bestehen))",
    re.IGNORECASE,
)
_ALWAYS_PLURAL = re.compile(r".*(?:[Dd]aten|[Kk]osten|[Ff]erien|[Ll]eute|[Aa]ugen)")
_FEMININE = re.compile(
    r".*(?:ung|heit|keit|schaft|tion|tät|ik|anz|enz|[^b]ei|frist|pflicht|gewähr|gebühr|nummer|steuer)",
    re.IGNORECASE,
)


def is_plural(noun: str) -> bool:
    """Whether a noun has the form of a plural that is no singular; many plurals have none."""
    if _ALWAYS_PLURAL.fullmatch(noun):
        return True
    return (
        noun.endswith("en") and bool(_PLURAL.search(noun[-6:])) and not _SINGULAR_EN.fullmatch(noun)
    )


def is_feminine(noun: str) -> bool:
    """Whether a noun has a suffix of feminine singulars; many feminine nouns have none."""
    return bool(_FEMININE.fullmatch(noun))
