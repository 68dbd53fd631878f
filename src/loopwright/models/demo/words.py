"""The words by which a text's language and wish are told: small tables, accents folded away."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class Language(StrEnum):
    """A language that the stand-in reads and writes."""

    ENGLISH = "en"
    SPANISH = "es"
    PORTUGUESE = "pt"
    FRENCH = "fr"


def fold(text: str) -> str:
    """Return a text in lower case, without accents, with plain apostrophes."""
    spread = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return "".join(sign for sign in spread if not unicodedata.combining(sign)).casefold()


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text; an apostrophe or a hyphen parts words."""
    return re.findall(r"[a-z]+", folded)


def has_stem(words: Iterable[str], stems: tuple[str, ...]) -> bool:
    """Tell whether a word begins with one of the stems."""
    return any(word.startswith(stems) for word in words)


def _table(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


# Words that only one of the four languages has, or has far more often than the others.
_COMMON = {
    Language.ENGLISH: _table(
        "i my mine the this that can could may might will would shall should get got have has had want need please",
        "what where when how which who why is are am was were does did it its and or if of for from to with about be",
        "been refund refunds refunded refundable money back order orders today you your still yet eligible reimburse",
        "reimbursed talk speak human someone status arrive arrived delivered there any only just now hello hi thanks",
    ),
    Language.SPANISH: _table(
        "yo mi mis el los las del al y una puedo puede puedes podria podrian obtener hoy es quiero quisiera",
        "necesito tengo hay donde cuando como cual dinero pedidos reembolsa reembolsame devuelveme devuelve mande hola",
        "gracias todavia aun llego llega hablar persona alguien orden ordenes estoy estan usted ustedes ahora solo",
        "devolucion lo sin con derecho recuperar reembolsan reembolsarme reembolseme devolverme cabe",
    ),
    Language.PORTUGUESE: _table(
        "eu meu minha meus minhas o os ao aos do dos da das na nas em um uma e posso pode podem poderia obter hoje",
        "quero queria gostaria preciso tenho onde quando qual dinheiro ter tera sera voce voces nao ainda chegou chega",
        "falar pessoa alguem encomenda encomendas reembolse devolva ola obrigado obrigada agora apenas sao estou com",
        "ser reembolsado reembolsada direito receber consigo situacao",
    ),
    Language.FRENCH: _table(
        "je j ma mon mes le les l des du d une puis peut peux pouvez pourrais est ce c suis etre sera serai ai avoir",
        "commande commandes remboursement rembourser rembourse remboursez remboursee aujourd hui argent obtenir veux",
        "voudrais vous nous elle il on quand quel quelle pour avec parler quelqu bonjour merci encore arrivee svp",
        "livree plait et au aux sur moi droit",
    ),
}

# Of a language that is not spoken here, and whose "du" is no French.
_GERMAN = _table(
    "ich du er wir wie wo wer wann warum heisst ist sind bin hast habe haben kann kannst der das ein eine mein meine",
    "und nicht bitte danke hallo bestellung geld zuruck erstattung",
)

# Signs that survive no folding, and in which languages they are written.
_SIGNS = {
    Language.SPANISH: frozenset("¿¡ñ"),
    Language.PORTUGUESE: frozenset("ãõ"),
    Language.FRENCH: frozenset("œèùû"),
}


def detect_language(text: str) -> Language | None:
    """Return the language that most words speak for; None when no word speaks for any."""
    counts = Counter(words_of(fold(text)))
    score = {language: sum(counts[word] for word in table) for language, table in _COMMON.items()}
    for language, signs in _SIGNS.items():
        score[language] += 2 * any(sign in signs for sign in text.casefold())
    best = max(score, key=score.__getitem__)
    if sum(counts[word] for word in _GERMAN) > score[best]:
        return None
    return best if score[best] else _by_stem(counts)


def _by_stem(words: Iterable[str]) -> Language | None:
    if has_stem(words, ("rembours",)):
        return Language.FRENCH
    if has_stem(words, ("estorn", "encomend")):
        return Language.PORTUGUESE
    return Language.SPANISH if has_stem(words, ("reembols", "pedido", "devol", "devuel")) else None


REFUND = ("refund", "reimburs", "reembols", "rembours", "devolv", "devolu", "devuel", "estorn", "ressarc", "restitu")
"""Stems of giving money back, in all four languages."""

STATUS = (
    *("where", "status", "track", "arriv", "deliver", "shipp", "donde", "estado", "lleg", "envi", "seguim", "entreg"),
    *("onde", "situacao", "cheg", "rastre", "statut", "suivi", "livr", "expedi", "trouve"),
)
"""Stems of asking how an order stands."""

PEOPLE = _table(
    "human humans person people someone somebody agent representative operator supervisor manager",
    "humano humana persona alguien agente representante operador operadora encargado pessoa alguem atendente gerente",
    "humain humaine personne quelqu conseiller conseillere operateur responsable responsavel",
)
"""People to be handed over to."""

TALK = (
    *("speak", "talk", "contact", "connect", "transfer", "chat", "escal", "habl", "comunic", "conect", "falar"),
    *("parler", "passer", "passez", "joindre", "pasar", "paseme", "pasame"),
)
"""Stems of getting in touch."""

ASKING = _table(
    "can could may might if whether eligible entitled qualify qualifies possible allowed know wonder wondering tell",
    "what when how why does will check explain policy",
    "puedo puede podria podre si cabe derecho posible elegible saber sabe cuando cuanto como sera politica dime",
    "posso pode poderia poderei direito possivel elegivel quando quanto tera consigo politica",
    "puis peut pourrais pourrai droit savoir quand combien comment sera serai politique",
)
"""Words that make a sentence about refunds a question, with or without a question mark."""

NEGATION = _table(
    "not no never don t dont without cannot cant won wont nor avoid stop",
    "nunca jamas sin nao sem jamais ne n pas rien aucun nem ni evite evita",
)
"""Words beside which nothing is taken for an instruction."""

IMPERATIVE = _table(
    "reembolsa reembolse reembolsen reembolsad reembolsame reembolseme reembolsenme reembolsar reembolsarme",
    "devuelve devuelva devuelvan devuelveme devuelvame devuelvanme devolverme reembolsem devolva devolvam",
    "remboursez rembourse rembourser reimburse estorne estornem",
)
"""Forms of a verb that ask for the money by themselves."""

WANTING = _table(
    "want need like request demand give issue process send make pay arrange",
    "quiero quisiera necesito deseo solicito exijo haz haga hagan procesa procese emite emita dame deme",
    "tramita tramite",
    "quero queria gostaria preciso desejo faca facam processe processem emita",
    "veux voudrais souhaite demande exige faites effectuez procedez traitez besoin",
)
"""Verbs that ask for the money together with a noun."""

VAGUE = _table(
    "half part partial partially percent only hundred thousand mitad medio parte parcial solo cien ciento mil",
    "metade meio apenas cem cento moitie partie partiel seulement cent mille",
)
"""Words for an amount that is not all, and not a number in figures."""

TODAY = ("today", "hoy", "hoje", "aujourd")
"""The word that names the date beside it as today's."""

PAST = (
    *("deliver", "arriv", "receiv", "bought", "ordered", "placed", "entreg", "recib", "compre", "comprad", "receb"),
    *("livr", "achet"),
)
"""Stems that name a lone date as that of something else."""
